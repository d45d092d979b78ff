//! Text forms of CPU lists, times and names in checks.

use crate::wording::duration;
use punctual_model::CpuSet;

/// A CPU list: `CPU 0`, `CPUs 0-3`; a long list is cut.
pub(super) fn cpus(cpus: &CpuSet) -> String {
    const LONG: usize = 40;
    let text = cpus.to_string();
    let shown = match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    format!("CPU{} {shown}", if cpus.len() == 1 { "" } else { "s" })
}

/// A duration, given in microseconds.
pub(super) fn micros(us: u64) -> String {
    duration(us as f64 * 1e3)
}

/// A duration, given in nanoseconds.
pub(super) fn nanos(ns: u64) -> String {
    duration(ns as f64)
}

/// The numbers of a list like `24-27,30` as words for a shell loop.
pub(super) fn words(list: &str) -> String {
    let word = |part: &str| match part.split_once('-') {
        Some((first, last)) => format!("$(seq {first} {last})"),
        None => part.to_owned(),
    };
    list.split(',').map(word).collect::<Vec<_>>().join(" ")
}

/// A name, cut if it is long, such as that of a control group.
pub(super) fn shortened(name: &str) -> String {
    const LONG: usize = 24;
    let end = name.char_indices().nth(LONG).map(|(end, _)| end);
    end.map_or_else(|| name.to_owned(), |end| format!("{}...", &name[..end]))
}

/// CPU mask in the kernel's format: words of 32 bits in hexadecimal, the highest first.
pub(super) fn mask(cpus: &CpuSet) -> String {
    let n_words = cpus.iter().last().map_or(0, |last| last / 32) + 1;
    let word = |index: u32| cpus.iter().filter(|cpu| cpu / 32 == index).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
    let words: Vec<_> = (0..n_words).rev().map(word).collect();
    let first = words.first().map(|word| format!("{word:x}"));
    first.into_iter().chain(words.iter().skip(1).map(|word| format!("{word:08x}"))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_takes_them() {
        for (list, text) in
            [("", "0"), ("0", "1"), ("0-3", "f"), ("31-32", "1,80000000"), ("64", "1,00000000,00000000")]
        {
            assert_eq!(mask(&list.parse().unwrap()), text, "{list}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let odd: CpuSet = (0..8192).step_by(2).collect();
        assert_eq!(cpus(&odd).len(), "CPUs ".len() + 40 + "...".len());
        assert_eq!(cpus(&[3].into_iter().collect()), "CPU 3");
    }
}
