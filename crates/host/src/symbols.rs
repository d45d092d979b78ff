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
        KernelSymbols::of(text.lines().filter_map(function).map(|(address, name, _)| (address, name, None)).collect())
    }

    /// The functions of another kernel, from its [`kernel_functions`]: those of modules with the name of the module;
    /// of several names of an address, the first.
    pub fn of_guest(text: &str) -> KernelSymbols {
        let mut lines: Vec<_> = text.lines().filter_map(function).collect();
        lines.sort_by_key(|(address, ..)| *address);
        lines.dedup_by_key(|(address, ..)| *address);
        KernelSymbols::of(lines)
    }

    fn of(mut lines: Vec<(u64, &str, Option<&str>)>) -> KernelSymbols {
        lines.sort_unstable_by_key(|(address, ..)| *address);
        let mut symbols = KernelSymbols::default();
        for (address, name, module) in lines {
            symbols.addresses.push(address);
            symbols.begins.push(symbols.names.len());
            symbols.names.push_str(name);
            module.into_iter().for_each(|module| symbols.names.extend([" ", module]));
        }
        symbols
    }

    /// Whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The addresses of the functions with one of these names.
    pub fn addresses(&self, names: &[&str]) -> Vec<u64> {
        let is_meant = |address: &&u64| self.name(**address).is_some_and(|name| names.contains(&name.as_str()));
        self.addresses.iter().filter(is_meant).copied().collect()
    }

    /// All functions, ascending by address.
    pub fn all(&self) -> Vec<(u64, String)> {
        let name = |index| self.name_at(index).unwrap_or_default().to_owned();
        self.addresses.iter().enumerate().map(|(index, address)| (*address, name(index))).collect()
    }

    /// The function that contains `address`.
    pub fn name(&self, address: u64) -> Option<String> {
        self.name_at(self.index(address)?).map(str::to_owned)
    }

    /// The index of the function that contains `address`.
    pub fn index(&self, address: u64) -> Option<usize> {
        self.addresses.partition_point(|begin| *begin <= address).checked_sub(1)
    }

    /// The name of the function with this index.
    pub fn name_at(&self, index: usize) -> Option<&str> {
        let begin = *self.begins.get(index)?;
        self.names.get(begin..self.begins.get(index + 1).copied().unwrap_or(self.names.len()))
    }
}

/// The lines of `/proc/kallsyms` with the functions of the kernel and of its modules; none for a user that may not see
/// them.
pub fn kernel_functions() -> Vec<String> {
    let text = std::fs::read_to_string(HostFs::running().root.join("proc/kallsyms")).unwrap_or_default();
    text.lines().filter(|line| function(line).is_some()).map(str::to_owned).collect()
}

/// Parses a line like `ffffffff81000000 T _text [module]`; `None` unless it is of code with a visible address.
fn function(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    words.next().filter(|kind| kind.eq_ignore_ascii_case("t") || kind.eq_ignore_ascii_case("w"))?;
    Some((address, words.next()?, words.next()))
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
        let guest = KernelSymbols::of_guest("ffff10 T other\nffff40 t middle\t[module]\nffff10 T alias\n");
        let at = |address| guest.index(address).and_then(|index| guest.name_at(index));
        assert_eq!([at(0xffff0f), at(0xffff3f), at(0xffff41)], [None, Some("other"), Some("middle [module]")]);
        let nothing = KernelSymbols::parse("");
        assert_eq!((nothing.name(5), nothing.all()), (None, Vec::new()));
    }
}
