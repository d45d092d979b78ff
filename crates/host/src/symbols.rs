//! The names of the kernel's functions.

use super::HostFs;

/// Functions by address (`/proc/kallsyms`). Reading them takes 0.1 s, so it is done once, at the first use.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbols {
    /// Addresses in order; empty where the kernel hides them (`kptr_restrict`, proc_sys_kernel(5)).
    addresses: Vec<u64>,
    /// Start of each name in `names`.
    begins: Vec<usize>,
    names: String,
}

impl KernelSymbols {
    /// Reads the symbols; none for a user that may not see them.
    pub fn read() -> KernelSymbols {
        let text = std::fs::read_to_string(HostFs::running().root.join("proc/kallsyms")).unwrap_or_default();
        KernelSymbols::parse(&text)
    }

    fn parse(text: &str) -> KernelSymbols {
        let mut lines: Vec<(u64, &str)> = text.lines().filter_map(function).collect();
        lines.sort_unstable_by_key(|(address, _)| *address);
        let mut symbols = KernelSymbols::default();
        for (address, name) in lines {
            symbols.addresses.push(address);
            symbols.begins.push(symbols.names.len());
            symbols.names.push_str(name);
        }
        symbols
    }

    /// The addresses of the functions with one of these names.
    pub fn addresses(&self, names: &[&str]) -> Vec<u64> {
        let is_meant = |address: &&u64| self.name(**address).is_some_and(|name| names.contains(&name.as_str()));
        self.addresses.iter().filter(is_meant).copied().collect()
    }

    /// All functions, ascending by address.
    pub fn all(&self) -> Vec<(u64, String)> {
        let ends = self.begins.iter().skip(1).copied().chain([self.names.len()]);
        let name = |(begin, end): (&usize, usize)| self.names.get(*begin..end).unwrap_or_default().to_owned();
        self.addresses.iter().copied().zip(self.begins.iter().zip(ends).map(name)).collect()
    }

    /// The function that contains `address`.
    pub fn name(&self, address: u64) -> Option<String> {
        let index = self.addresses.partition_point(|begin| *begin <= address).checked_sub(1)?;
        let begin = *self.begins.get(index)?;
        let end = self.begins.get(index + 1).copied().unwrap_or(self.names.len());
        self.names.get(begin..end).map(str::to_owned)
    }
}

/// The functions of the kernel and of its modules, a line each: address, name, and the module in brackets or nothing;
/// none for a user that may not see them.
pub fn kernel_functions() -> Vec<String> {
    let text = std::fs::read_to_string(HostFs::running().root.join("proc/kallsyms")).unwrap_or_default();
    let line = |line: &str| {
        let (address, name) = function(line)?;
        Some(format!("{address:x} {name} {}", line.split_ascii_whitespace().nth(3).unwrap_or_default()))
    };
    text.lines().filter_map(line).collect()
}

/// Parses a line like `ffffffff81000000 T _text [module]`; `None` unless it is of code with a visible address.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    words.next().filter(|kind| kind.eq_ignore_ascii_case("t") || kind.eq_ignore_ascii_case("w"))?;
    Some((address, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_function_that_begins_before_it() {
        let text = "ffff80 T last\nffff10 T first\nffff40 t middle\t[module]\nffff41 D data\n0 T hidden\n";
        let symbols = KernelSymbols::parse(text);
        for (address, name) in [
            (0xffff0f, None),
            (0xffff10, Some("first")),
            (0xffff3f, Some("first")),
            (0xffff42, Some("middle")),
            (u64::MAX, Some("last")),
        ] {
            assert_eq!(symbols.name(address).as_deref(), name, "{address:x}");
        }
        let all = [(0xffff10, "first"), (0xffff40, "middle"), (0xffff80, "last")];
        assert_eq!(symbols.all(), all.map(|(address, name)| (address, name.to_owned())));
        let nothing = KernelSymbols::parse("");
        assert_eq!((nothing.name(5), nothing.all()), (None, Vec::new()));
    }
}
