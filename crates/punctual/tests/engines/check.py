"""Reads the files that `punctual export` has written, by the readers that engines use.

Usage: check.py ENGINE DIRECTORY TITLE PLAN [SCHEMAS]; prints what is wrong, and "skipped: ..." for a reader that is not
installed. SCHEMAS is a directory with the Python package lava_common of Debian's lava-common.
"""

import json
import pathlib
import sys

import yaml


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


def ansible(directory, title, plan):
    class Loader(yaml.SafeLoader):
        pass

    for name in ("punctual.yml", "shard.yml", "inventory.yml"):
        with open(directory / name) as file:
            assert yaml.load(file, Loader), name
    assert (directory / "plan.toml").read_text() == plan


def k8s(directory, title, plan):
    config, job = documents(directory / "job.yaml")
    assert config["data"]["plan.toml"] == plan, config
    for one in (config, job):
        assert one["metadata"]["annotations"]["punctual/title"] == title, one
    pod = job["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"], "guaranteed"
    assert float(resources["limits"]["cpu"]) == int(resources["limits"]["cpu"]), "whole CPUs"
    assert job["spec"]["completionMode"] == "Indexed"
    (directory / "args").write_text(pod["containers"][0]["args"][0])
    try:
        import kubernetes_validate
    except ImportError:
        print("skipped: needs kubernetes-validate (PyPI)")
        return
    for one in (config, job):
        kubernetes_validate.validate(one, "1.30", strict=True)


def lava(directory, title, plan):
    jobs = [documents(path)[0] for path in sorted(directory.glob("shard-*.yaml"))]
    assert jobs
    for job in jobs:
        test = job["actions"][-1]["test"]["definitions"][0]["repository"]
        assert test["metadata"]["description"] == title, test
        assert job["job_name"].startswith(title[:100]) and len(job["job_name"]) <= 200, job["job_name"]
        assert plan in test["run"]["steps"][0]
    first = jobs[0]["actions"][-1]["test"]["definitions"][0]["repository"]
    (directory / "steps").write_text("\n".join(first["run"]["steps"]))
    if len(sys.argv) < 6:
        print("skipped: needs the schemas of lava-common")
        return
    sys.path.insert(0, sys.argv[5])
    try:
        import lava_common.schemas
    except ImportError as missing:
        print(f"skipped: {missing}")
        return
    for job in jobs:
        lava_common.schemas.validate(job)


def labgrid(directory, title, plan):
    assert (directory / "plan.toml").read_text() == plan


engine, directory, title, plan = sys.argv[1:5]
{"ansible": ansible, "k8s": k8s, "lava": lava, "labgrid": labgrid}[engine](
    pathlib.Path(directory), title, pathlib.Path(plan).read_text()
)
print(json.dumps({"engine": engine, "title": title}))
