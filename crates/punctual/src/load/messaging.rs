//! The load `messaging`: the pattern of hackbench.
//!
//! In each group 20 processes send 100-byte messages to each of 20 others, over a stream socket pair per
//! receiver; without end, so that the rate is the machine's.

use super::{Crew, LoadError, count_one};
use model::Load;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;

/// hackbench(8): 20 senders and 20 receivers a group (`--fds=20`), 10 groups, 100 bytes a message (`--datasize=100`).
const PER_GROUP: usize = 20;
const GROUPS: usize = 10;
const MESSAGE_BYTES: usize = 100;

/// hackbench's 10 groups, or one for each CPU where there are more: each CPU has at least 40 tasks to switch between.
pub(super) fn default_groups(n_cpus: usize) -> u32 {
    u32::try_from(n_cpus.max(GROUPS)).unwrap_or(Load::MAX_GROUPS).min(Load::MAX_GROUPS)
}

/// Starts `groups` groups and waits until every receiver has got a message.
pub(super) fn start(load: &Load, groups: u32) -> Result<Crew, LoadError> {
    let groups = groups as usize;
    let mut crew = Crew::new(load, "message", groups * 2 * PER_GROUP, groups * PER_GROUP)?;
    for group in 0..groups {
        start_group(&mut crew, group * PER_GROUP)?;
    }
    crew.wait_until_all_work()?;
    Ok(crew)
}

/// Starts one group, whose receivers count from `first_counter` on. The parent's ends of the sockets close with it.
fn start_group(crew: &mut Crew, first_counter: usize) -> Result<(), LoadError> {
    let mut outlets = Vec::with_capacity(PER_GROUP);
    for receiver in 0..PER_GROUP {
        let (outlet, inlet) = UnixStream::pair().map_err(|source| crew.start_error(source))?;
        crew.hire(Some(first_counter + receiver), move |count| receive(inlet, count))?;
        outlets.push(outlet);
    }
    for _ in 0..PER_GROUP {
        crew.hire(None, |_| send(&outlets))?;
    }
    Ok(())
}

fn receive(mut inlet: UnixStream, count: Option<&AtomicU64>) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        inlet.read_exact(&mut message)?;
        count_one(count);
    }
}

fn send(outlets: &[UnixStream]) -> io::Result<()> {
    let message = [0; MESSAGE_BYTES];
    loop {
        for mut outlet in outlets {
            outlet.write_all(&message)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_with_the_machine_only_beyond_ten_cpus() {
        for (n_cpus, groups) in [(1, 10), (10, 10), (11, 11), (64, 64), (8192, Load::MAX_GROUPS)] {
            assert_eq!(default_groups(n_cpus), groups, "{n_cpus}");
        }
    }
}
