//! A cell as an outside program sees it: its command line and its time.

use super::Cell;
use crate::{Instrument, Span};

/// Time that a program may take beyond its duration, unless its timeout is given.
const MORE: Span = Span(60_000_000_000);

impl Cell {
    /// The command line of `instrument` with the values of this cell; its first word is the program.
    pub fn words_of(&self, instrument: &Instrument) -> Vec<String> {
        instrument.words_with(|name| match name {
            "cpus" => self.cpus.to_string(),
            "cpu" => self.cpus.iter().next().unwrap_or(0).to_string(),
            "n_cpus" => self.cpus.len().to_string(),
            "policy" => self.policy.to_string().split(':').next().unwrap_or_default().to_owned(),
            "priority" => self.policy.priority().unwrap_or(0).to_string(),
            "period_us" => (self.period.ns() / 1_000).to_string(),
            "period_ns" => self.period.ns().to_string(),
            "duration_s" => self.duration.ns().div_ceil(Span::SECOND.ns()).to_string(),
            _ => self.period.cycles_in(self.duration).to_string(),
        })
    }

    /// The longest time of `instrument` from its start to its end.
    pub fn timeout_of(&self, instrument: &Instrument) -> Span {
        instrument.timeout.unwrap_or(Span(self.duration.ns().saturating_add(MORE.ns())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::cell::tests::cell;

    #[test]
    fn the_command_takes_the_values_of_its_cell() {
        let one: Instrument =
            "program:cyclictest:/usr/bin/cyclictest -a{cpus} -t {n_cpus} -p{priority} -i{period_us} -D{duration_s} awk '{print $1}'"
                .parse()
                .unwrap();
        let cell = Cell { policy: "fifo:80".parse().unwrap(), cpus: "0,2".parse().unwrap(), ..cell() };
        let words = cell.words_of(&one);
        assert_eq!(words[..4], ["/usr/bin/cyclictest", "-a0,2", "-t", "2"]);
        assert_eq!(words[4..6], ["-p80", "-i1000"]);
        assert_eq!(words.last().map(String::as_str), Some("{print $1}"));
        assert_eq!(one.name(), "cyclictest");
    }
}
