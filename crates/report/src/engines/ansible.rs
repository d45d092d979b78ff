//! Ansible: a playbook for machines that are reached by ssh, with or without Python.
//!
//! Only `raw` and `script` act on the machines, because boards have no Python; `script` with `cp` in place of an
//! interpreter copies a file. A shard runs detached from its connection, and the controller sleeps for the known
//! duration: a look at a machine is itself a disturbance. What a machine has measured comes as text of base64, so that
//! nothing on it can name files of the controller.

use super::quoting::{comment, yaml};
use super::text::filled;
use super::{File, Job};
use std::fmt::Write;

/// Time that a shard may take beyond twice its expected duration, s: other campaigns hold the machine meanwhile.
const PATIENCE: u64 = 600;

/// The files of a job: playbook, the tasks of a shard, inventory and plan.
pub fn files(job: &Job) -> Vec<File> {
    let (seconds, interval) = (job.seconds(), job.interval());
    let values = [
        ("TITLE", &*comment(&job.title)),
        ("TOOL", model::TOOL),
        ("SHARDS", &*job.shards.to_string()),
        ("SECONDS", &*seconds.to_string()),
        ("INTERVAL", &*interval.to_string()),
        ("LOOKS", &*(seconds.saturating_add(PATIENCE) / interval).to_string()),
        ("OPTION", &*job.shard_option("{{ shard }}")),
        ("ARCHITECTURES", &*job.architectures.join(", ")),
        ("ROOT", if job.needs_root { ROOT } else { "" }),
        ("MERGE", if job.shards == 1 { "" } else { MERGE }),
        ("RUN", if job.shards == 1 { "shards/1" } else { "run" }),
    ];
    vec![
        File::plain("punctual.yml", filled(PLAYBOOK, &values)),
        File::plain("shard.yml", filled(SHARD, &values)),
        File::plain("inventory.yml", inventory(job)),
        job.plan_file(),
    ]
}

/// The inventory: the named machines, or an example to replace.
fn inventory(job: &Job) -> String {
    let mut text = String::from(
        "# Machines to measure on. Any inventory serves: ansible-playbook -i FILE punctual.yml\nall:\n  hosts:\n",
    );
    if job.targets.is_empty() {
        text.push_str("    board1:                       # replace by yours\n      ansible_host: 192.0.2.1\n");
        text.push_str("      ansible_user: root\n");
    }
    for target in &job.targets {
        let _ = writeln!(text, "    {}:", yaml(target));
    }
    text
}

const PLAYBOOK: &str = r#"# <<TITLE>>
#
#   ansible-playbook -i inventory.yml punctual.yml
#
# Measures plan.toml in <<SHARDS>> shards on the machines of the inventory, each for about <<SECONDS>> s. Written by <<TOOL>>.
# A machine that does not answer is left out, one that is lost meanwhile costs its shard: the same command again measures
# the shards that are missing. A machine needs a POSIX shell with mktemp, gzip and base64, such as busybox; no Python.
# Programs are beside this file, in bin/punctual-ARCHITECTURE: <<ARCHITECTURES>>.

- name: Find the machines that answer
  hosts: all
  gather_facts: false
  tasks:
    - name: Ask for the architecture and the user
      ansible.builtin.raw: echo "machine=$(uname -m) user=$(id -u)"
      register: machine
      changed_when: false
      ignore_unreachable: true

    - name: Measure on those
      ansible.builtin.group_by:
        key: punctual_ready
      when: machine.rc | default(1) == 0
      changed_when: false

- name: Measure the shards
  hosts: punctual_ready
  gather_facts: false
  vars:
    shards: <<SHARDS>>
    seconds: <<SECONDS>>                  # expected duration of a shard: nothing looks at the machines until then
    interval: <<INTERVAL>>                 # then once in so many seconds,
    looks: <<LOOKS>>                    # so many times
    ready: "{{ groups['punctual_ready'] | sort }}"
    uname: "{{ machine.stdout | regex_search('machine=([^ \\r\\n]+)', '\\1') | first }}"
    program: "bin/punctual-{{ {'armv7l': 'arm', 'armv8l': 'arm'}[uname] | default(uname) }}"
    ansible_ssh_transfer_method: piped    # boards have no sftp
  tasks:
    - name: Find the shards that were measured before
      ansible.builtin.find:
        paths: "{{ playbook_dir }}/shards"
        patterns: run.jsonl
        depth: 2
        recurse: true
      register: found
      run_once: true
      delegate_to: localhost
      become: false
      vars:
        ansible_connection: local
        ansible_python_interpreter: "{{ ansible_playbook_python }}"

    - name: List the shards that are missing
      ansible.builtin.set_fact:
        missing: >-
          {{ range(1, shards + 1) | list | difference(
             found.files | map(attribute='path') | map('dirname') | map('basename') | map('int') | list) }}

    - name: Check that there is a program for this machine
      ansible.builtin.assert:
        that: (playbook_dir ~ '/' ~ program) is file
        fail_msg: "no {{ program }}: copy punctual for {{ uname }} there"
        quiet: true
<<ROOT>>
    - name: Make a directory that permits programs
      ansible.builtin.raw: >-
        umask 077;
        for p in "${TMPDIR:-/tmp}" /var/tmp /dev/shm /run "$HOME"; do
        d=$(mktemp -d "$p/punctual-XXXXXX" 2>/dev/null) || continue;
        : >"$d/try"; chmod 700 "$d/try"; "$d/try" 2>/dev/null && echo "directory=$d" && exit 0;
        rm -rf "$d"; done; exit 1
      register: made
      when: missing | length > 0

    - name: Measure on all machines that are left, and remove what was copied
      when: missing | length > 0
      vars:
        directory: "{{ made.stdout | regex_search('directory=([^\\r\\n]+)', '\\1') | first }}"
      block:
        - name: Copy the program
          ansible.builtin.script:
            cmd: "{{ program }} {{ (directory ~ '/') | quote }}"
            executable: cp

        - name: Copy the plan
          ansible.builtin.script:
            cmd: "plan.toml {{ (directory ~ '/') | quote }}"
            executable: cp

        - name: Measure a shard on each machine
          ansible.builtin.include_tasks: shard.yml
          loop: "{{ range(0, ((missing | length) / (ready | length)) | round(0, 'ceil') | int) | list }}"
          loop_control:
            loop_var: round
      always:
        - name: Remove the directory
          ansible.builtin.raw: rm -rf {{ directory | quote }}

- name: Make one run of the shards
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    shards: <<SHARDS>>
    punctual: "{{ playbook_dir }}/bin/punctual-{{ lookup('ansible.builtin.pipe', 'uname -m') }}"
  tasks:
    - name: Find the shards
      ansible.builtin.find:
        paths: "{{ playbook_dir }}/shards"
        patterns: run.jsonl
        depth: 2
        recurse: true
      register: found

    - name: Check that no shard is missing
      ansible.builtin.assert:
        that: missing | length == 0
        fail_msg: "shards missing: {{ missing | join(', ') }}; the same command again measures them"
        quiet: true
      vars:
        missing: >-
          {{ range(1, shards + 1) | list | difference(
             found.files | map(attribute='path') | map('dirname') | map('basename') | map('int') | list) }}
<<MERGE>>
    - name: Name the run
      ansible.builtin.debug:
        msg: "punctual show {{ (playbook_dir ~ '/<<RUN>>') | quote }}"
"#;

const ROOT: &str = r#"
    - name: Check that the user is root
      ansible.builtin.assert:
        that: "'user=0' in machine.stdout"
        fail_msg: "the plan needs root: set ansible_user to root"
        quiet: true
"#;

const MERGE: &str = r#"
    - name: Merge them
      ansible.builtin.command:
        argv: "{{ [punctual, 'merge'] + dirs + ['--out', playbook_dir ~ '/run'] }}"
        creates: "{{ playbook_dir }}/run/run.jsonl"
      vars:
        dirs: "{{ found.files | map(attribute='path') | map('dirname') | list }}"
"#;

const SHARD: &str = r#"# One shard on each machine. Written by <<TOOL>>.
- name: Measure and fetch
  when: shard | int > 0
  vars:
    shard: "{{ (missing + [0] * (ready | length))[round * (ready | length) + ready.index(inventory_hostname)] }}"
    out: "shards/{{ shard }}"
  block:
    # In a session of its own, which outlives the connection. The machine is locked while it measures; `--wait` waits
    # for other campaigns.
    - name: Start
      ansible.builtin.raw: >-
        trap '' HUP; cd {{ directory | quote }} && mkdir -p shards &&
        { $(command -v setsid) sh -c './{{ program | basename }} run plan.toml<<OPTION>> --wait --out {{ out }} >log 2>&1;
        echo "status=$?" >status' </dev/null >/dev/null 2>&1 & }

    - name: Sleep while they measure
      ansible.builtin.pause:
        seconds: "{{ seconds }}"

    - name: Wait for the end
      ansible.builtin.raw: cat {{ directory | quote }}/status 2>/dev/null || echo running
      register: ended
      until: "'status=' in ended.stdout"
      retries: "{{ looks }}"
      delay: "{{ interval }}"
      changed_when: false

    # 2 and 3 are verdicts on the limits of the plan.
    - name: Fetch
      ansible.builtin.raw: >-
        cd {{ directory | quote }};
        [ -s {{ out }}/run.jsonl ] || { cat log; exit 1; };
        case $(cat status) in status=0|status=2|status=3) gzip -c {{ out }}/run.jsonl | base64;;
        *) cat log; exit 1;; esac
      register: fetched
      changed_when: false
      # With a terminal, dropbear cuts off what was not sent yet when the command ends.
      vars: {ansible_ssh_use_tty: false}

    - name: Keep
      ansible.builtin.shell:
        cmd: >-
          umask 022; mkdir -p {{ out }} && tr -d '\r' | base64 -d | gzip -d >{{ out }}/new
          && mv {{ out }}/new {{ out }}/run.jsonl
        chdir: "{{ playbook_dir }}"
        stdin: "{{ fetched.stdout }}"
      delegate_to: localhost
      become: false
      vars:
        ansible_connection: local
        ansible_python_interpreter: "{{ ansible_playbook_python }}"

    - name: Make room for the next shard
      ansible.builtin.raw: cd {{ directory | quote }} && rm -rf shards status log
  rescue:
    - name: Name the missing shard
      ansible.builtin.debug:
        msg: "shard {{ shard }} is missing: {{ (ansible_failed_result.stdout | default(ansible_failed_result.msg)) | trim }}"
"#;
