//! Kubernetes: an indexed Job, a pod on a node of its own for each shard, with rights and whole CPUs.
//!
//! Pods have no storage in common, so a run comes back through the log of its pod. The job controller starts a lost or
//! failed index again, at most twice.

use super::logs;
use super::quoting::{comment, label, yaml, yaml_block};
use super::text::filled;
use super::{File, Job};

/// The image where none is named.
const IMAGE: &str = "registry.example/punctual:latest";

/// The files of a job: the objects of the cluster, the image, and the collector.
pub fn files(job: &Job) -> Vec<File> {
    let name = format!("punctual-{}", label(&job.name, 40));
    let n = job.shards.to_string();
    // The index of a pod begins with 0, that of a shard with 1.
    let measuring = logs::measuring(job, "punctual", "/plan/plan.toml", "/tmp/run", " >&2");
    let script = format!("shard=$((JOB_COMPLETION_INDEX + 1))\n{measuring}");
    let values = [
        ("TITLE", &*comment(&job.title)),
        ("TOOL", model::TOOL),
        ("NAME", &*name),
        ("ANNOTATION", &*yaml(&job.title)),
        ("PLAN", &*yaml_block(&job.plan, 4)),
        ("SHARDS", &*n),
        ("SECONDS", &*job.seconds().to_string()),
        ("IMAGE", &*yaml(job.source.as_deref().unwrap_or(IMAGE))),
        ("SCRIPT", &*yaml_block(&script, 14)),
        ("CPUS", &*yaml(&job.cpus.to_string())),
        ("MEMORY", if job.virtual_time { "2Gi" } else { "512Mi" }),
        ("RIGHTS", if job.needs_root { RIGHTS } else { "            capabilities:\n              drop: [ALL]\n" }),
        ("AFFINITY", &*affinity(job, &name)),
        ("ARCH", job.architectures.first().map_or("x86_64", String::as_str)),
    ];
    let head = "# Writes the shards from the logs of the pods and makes one run of them: ./collect\n";
    let pods = format!(
        "for pod in $(kubectl get pods --selector job-name={name},batch.kubernetes.io/job-completion-index=$((shard - 1)) \
         --field-selector status.phase=Succeeded --output name | head -n 1); do kubectl logs --tail=-1 \"$pod\"; done"
    );
    vec![
        File::plain("job.yaml", filled(OBJECTS, &values)),
        File::plain("Containerfile", filled(CONTAINERFILE, &values)),
        File::program("collect", logs::collector(job, head, &pods)),
        job.plan_file(),
    ]
}

/// The affinity of the pods: to the named nodes, and away from each other, unless shards do not disturb each other.
fn affinity(job: &Job, name: &str) -> String {
    let apart = if job.virtual_time { String::new() } else { filled(APART, &[("NAME", name)]) };
    let all = apart + &nodes(job);
    if all.is_empty() { all } else { format!("      affinity:\n{all}") }
}

/// The affinity to the named nodes.
fn nodes(job: &Job) -> String {
    if job.targets.is_empty() {
        return String::new();
    }
    let names = job.targets.iter().map(|target| yaml(target)).collect::<Vec<_>>().join(", ");
    format!(
        "        nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n\
         \x20             - matchExpressions:\n                  - key: kubernetes.io/hostname\n\
         \x20                   operator: In\n                    values: [{names}]\n"
    )
}

const OBJECTS: &str = r#"# <<TITLE>>
#
#   kubectl apply -f job.yaml
#   kubectl wait --for=condition=complete --timeout=-1s job/<<NAME>>
#   ./collect
#
# Measures the plan in <<SHARDS>> shards, each for about <<SECONDS>> s. Written by <<TOOL>>.
# CPUs are exclusive where the kubelet has --cpu-manager-policy=static; pods with requests = limits get whole ones.
apiVersion: v1
kind: ConfigMap
metadata:
  name: <<NAME>>
  annotations:
    punctual/title: <<ANNOTATION>>
data:
  plan.toml: <<PLAN>>
---
apiVersion: batch/v1
kind: Job
metadata:
  name: <<NAME>>
  annotations:
    punctual/title: <<ANNOTATION>>
spec:
  completionMode: Indexed
  completions: <<SHARDS>>
  parallelism: <<SHARDS>>
  backoffLimitPerIndex: 2             # a shard is tried again, the others go on
  template:
    metadata:
      labels:
        app.kubernetes.io/name: <<NAME>>
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
<<AFFINITY>>      containers:
        - name: punctual
          image: <<IMAGE>>
          command: ["/bin/sh", "-c"]
          args:
            - <<SCRIPT>>
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
<<RIGHTS>>          resources:
            requests:
              cpu: <<CPUS>>
              memory: <<MEMORY>>
            limits:
              cpu: <<CPUS>>
              memory: <<MEMORY>>
          volumeMounts:
            - name: plan
              mountPath: /plan
            - name: scratch
              mountPath: /tmp
            - name: scratch
              mountPath: /var/tmp
      volumes:
        - name: plan
          configMap:
            name: <<NAME>>
        - name: scratch
          emptyDir: {}
"#;

/// No two pods on one node: they would disturb each other.
const APART: &str = r"        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: <<NAME>>
";

/// What real-time policies and locked memory need.
const RIGHTS: &str = "            runAsUser: 0\n            capabilities:\n              drop: [ALL]\n\
                      \x20             add: [SYS_NICE, IPC_LOCK]\n";

const CONTAINERFILE: &str = r"# The image: podman build --build-arg ARCH=$(uname -m) --tag IMAGE . && podman push IMAGE
FROM docker.io/library/busybox:1.37-musl
ARG ARCH=<<ARCH>>
COPY bin/punctual-${ARCH} /bin/punctual
";
