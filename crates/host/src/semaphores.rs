//! System V semaphores that a killed process has left; the kernel removes them only with their namespace.

use super::HostFs;
use super::process::is_gone;
use punctual_sys::ipc;
use std::path::PathBuf;

/// The kernel's list of them, proc_sysvipc(5).
const LIST: &str = "proc/sysvipc/sem";

/// Removes the sets left by ended processes of this program. Returns the removed sets, by the kernel's names.
pub(super) fn remove_abandoned() -> Vec<PathBuf> {
    let list = HostFs::running().text(LIST).unwrap_or_default();
    let abandoned = sets(&list).filter(|(_, maker)| is_gone(*maker)).map(|(set, _)| set);
    abandoned
        .filter(|set| ipc::remove_semaphores(*set).is_ok())
        .map(|set| PathBuf::from(format!("/{LIST} {set}")))
        .collect()
}

/// The sets of this program in the kernel's list, and the process that made each.
fn sets(list: &str) -> impl Iterator<Item = (i32, u32)> {
    list.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        // key, semid, perms, nsems, ...
        let (key, set, _, semaphores) = (words.next()?, words.next()?, words.next()?, words.next()?);
        // The key is printed with a sign.
        let key = key.parse::<i32>().ok()?.cast_unsigned();
        Some((set.parse().ok()?, ipc::maker_of_semaphores(key, semaphores.parse().ok()?)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_of_this_program_are_found_in_the_list() {
        let list = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n\
                    1900024423          4   600          7     0     0     0     0 1795330000 1795330000\n\
                    1900024423          5   600          2     0     0     0     0 1795330000 1795330000\n\
                    0      32830   600          2     0     0     0     0          0 1795330000\n\
                    -1         6   600          7     0     0     0     0          0 1795330000\n\
                    damaged\n";
        assert_eq!(sets(list).collect::<Vec<_>>(), [(4, 4711)]);
    }
}
