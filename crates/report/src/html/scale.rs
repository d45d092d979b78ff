//! Logarithmic axes: the range that holds the values, ticks at 1 to 9 of every decade, labels where there is room.

use punctual_analysis::wording::{duration, number};

/// Edges of a picture's plane, in quarters of a pixel at its natural size; y grows downwards.
pub(super) const LEFT: f64 = 240.0;
pub(super) const RIGHT: f64 = 1660.0;
pub(super) const TOP: f64 = 96.0;
pub(super) const BOTTOM: f64 = 912.0;

/// Length of the arrow of an interval that goes on beyond its axis.
const ARROW: f64 = 22.0;

/// A logarithmic axis between two values above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Log {
    /// log10 of the value at its beginning.
    pub(super) from: f64,
    /// log10 of the value at its end; larger than `from`.
    pub(super) to: f64,
}

impl Log {
    /// Returns the axis around both values; its ends are 1, 2 or 5 times a power of ten, and at least half a decade
    /// apart.
    pub(super) fn around(low: f64, high: f64) -> Log {
        let low = low.max(f64::MIN_POSITIVE);
        let (from, to) = (nice_below(low).log10(), nice_above(high.max(low * 3.0)).log10());
        Log { from, to }
    }

    /// Returns the position of a value, 0 to 1; of one outside, the nearer end.
    pub(super) fn share(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        ((value.log10() - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Whether a value is on the axis, not beyond its ends.
    pub(super) fn holds(self, value: f64) -> bool {
        value.is_finite() && value > 0.0 && (self.from - 1e-9..=self.to + 1e-9).contains(&value.log10())
    }

    /// Returns the path of an interval on the axis drawn between these places: a line that ends in an arrow where the
    /// interval goes on beyond the axis. `at` turns a place on the axis and one across it into a point.
    pub(super) fn interval(
        self,
        (begin, end): (f64, f64),
        (low, high): (f64, f64),
        at: impl Fn(f64, f64) -> (f64, f64),
    ) -> String {
        let place = |value: f64| begin + self.share(value) * (end - begin);
        let point = |along: f64, across: f64| {
            let (x, y) = at(along, across);
            format!("{x:.1},{y:.1}")
        };
        let (low_at, high_at) = (place(low), place(high));
        let mut path = format!("M{}L{}", point(low_at, 0.0), point(high_at, 0.0));
        let back = ARROW * (end - begin).signum();
        for (value, tip, back) in [(low, low_at, back), (high, high_at, -back)] {
            if !self.holds(value) {
                let sides = [-ARROW, ARROW].map(|across| point(tip + back, across));
                path += &format!("M{}L{}L{}", sides[0], point(tip, 0.0), sides[1]);
            }
        }
        path
    }

    pub(super) fn x(self, value: f64) -> f64 {
        LEFT + self.share(value) * (RIGHT - LEFT)
    }

    pub(super) fn y(self, value: f64) -> f64 {
        BOTTOM - self.share(value) * (BOTTOM - TOP)
    }

    /// Returns the exponents of the powers of ten on the axis and next to it.
    pub(super) fn decades(self) -> std::ops::RangeInclusive<i32> {
        let whole = |power: f64| i32::try_from(super::path::whole(power)).unwrap_or(0);
        whole(self.from.floor())..=whole(self.to.ceil())
    }

    /// Returns 1 to 9 of every decade within the axis: the value, and whether it is a power of ten.
    pub(super) fn ticks(self) -> Vec<(f64, bool)> {
        let mut ticks = Vec::new();
        let mut power = self.from.floor();
        while power <= self.to {
            for digit in 1..=9 {
                let value = f64::from(digit) * 10_f64.powf(power);
                if value.log10() >= self.from - 1e-9 && value.log10() <= self.to + 1e-9 {
                    ticks.push((value, digit == 1));
                }
            }
            power += 1.0;
        }
        ticks
    }

    /// Returns the ticks with a label: powers of ten, every second or third of them on a long axis; on a short one also
    /// 2 and 5.
    pub(super) fn labelled(self) -> Vec<f64> {
        let decades = self.to - self.from;
        let every = if decades > 14.0 {
            3
        } else if decades > 7.0 {
            2
        } else {
            1
        };
        let is_labelled = |value: f64, is_power: bool| {
            let power = value.log10().round();
            let digit = (value / 10_f64.powf(value.log10().floor() + 1e-9)).round();
            is_power && power.rem_euclid(f64::from(every)) == 0.0 || decades < 1.6 && [2.0, 5.0].contains(&digit)
        };
        self.ticks().into_iter().filter(|(value, power)| is_labelled(*value, *power)).map(|(value, _)| value).collect()
    }
}

fn nice_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|digit| digit * power).find(|nice| *nice <= value * (1.0 + 1e-9)).unwrap_or(power)
}

fn nice_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|nice| *nice >= value * (1.0 - 1e-9));
    nice.unwrap_or(power * 10.0)
}

/// Returns a length of time, ns, as on an axis.
pub(super) fn time_label(ns: f64) -> String {
    duration(ns)
}

/// Returns a number as on an axis, powers of ten as such: 1, 5, 10, 10², 10⁴; 0.5, 10⁻¹, 10⁻³.
pub(super) fn power_label(n: f64) -> String {
    let power = n.log10();
    let is_power = (power - power.round()).abs() < 1e-6;
    if is_power && !(-0.5..1.5).contains(&power) { format!("10{}", raised(&format!("{power:.0}"))) } else { number(n) }
}

/// Returns the reciprocal of a number as on an axis: 1, 10⁻¹, 10⁻².
pub(super) fn reciprocal_label(n: f64) -> String {
    power_label(1.0 / n)
}

/// Returns a whole number as an exponent.
fn raised(number: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
    number.chars().map(|c| digit(c).and_then(|digit| DIGITS.get(digit).copied()).unwrap_or('⁻')).collect()
}

/// Returns the percentile with this share above it: 99.9 % of 0.001.
pub(super) fn percentile_label(exceedance: f64) -> String {
    // 0.1 and 0.01 need no decimals, every further nine needs one.
    let decimals = (0..9).find(|decimals| 10_f64.powi(-decimals - 2) <= exceedance * 1.01).unwrap_or(9);
    let width = usize::try_from(decimals).unwrap_or(0);
    format!("{:.width$} %", 100.0 * (1.0 - exceedance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_their_values_and_end_at_round_ones() {
        for (low, high, from, to) in [
            (3_100.0, 44e6, 2_000.0, 50e6),
            (1_000.0, 1_000.0, 1_000.0, 5_000.0),
            (5.0, 10.0, 5.0, 20.0),
            (0.5, 64_000.0, 0.5, 100_000.0),
            (999.9, 1_000.1, 500.0, 5_000.0),
        ] {
            let axis = Log::around(low, high);
            let about = |power: f64, value: f64| (power - f64::log10(value)).abs() < 1e-6;
            assert!(about(axis.from, from) && about(axis.to, to), "{low} {high}: {axis:?}");
        }
        assert!((Log::around(1.0, 100.0).share(10.0) - 0.5).abs() < 1e-9);
        assert_eq!((Log::around(1.0, 100.0).share(-3.0), Log::around(1.0, 100.0).share(1e9)), (0.0, 1.0));
    }

    #[test]
    fn an_interval_beyond_the_axis_ends_in_an_arrow() {
        let axis = Log::around(0.1, 10.0);
        let path = |interval| axis.interval((0.0, 200.0), interval, |along, across| (along, 50.0 + across));
        assert_eq!(path((1.0, 10.0)), "M100.0,50.0L200.0,50.0");
        assert_eq!(path((1.0, 30.0)), "M100.0,50.0L200.0,50.0M178.0,28.0L200.0,50.0L178.0,72.0");
        for (low, arrows) in [(0.1, 0), (0.0999, 1), (0.0, 1), (-1.0, 1), (f64::NAN, 1)] {
            assert_eq!(path((low, 1.0)).matches('M').count(), 1 + arrows, "{low}");
        }
        assert!(!axis.holds(f64::INFINITY) && !axis.holds(11.0) && axis.holds(10.0));
    }

    #[test]
    fn ticks_are_logarithmic() {
        let axis = Log::around(1_000.0, 100_000.0);
        let ticks = axis.ticks();
        assert_eq!((ticks.len(), ticks.iter().filter(|(_, power)| *power).count()), (19, 3));
        assert_eq!(axis.labelled().into_iter().map(time_label).collect::<Vec<_>>(), ["1 us", "10 us", "100 us"]);
        let short = Log::around(2_000.0, 9_000.0);
        assert_eq!(short.labelled().into_iter().map(time_label).collect::<Vec<_>>(), ["2 us", "5 us", "10 us"]);
        let long = Log::around(1.0, 1e9);
        assert_eq!(long.labelled().len(), 5, "{:?}", long.labelled());
    }

    #[test]
    fn labels_are_those_of_the_field() {
        let percentiles = [0.5, 0.1, 0.01, 0.001, 0.0001, 1e-5].map(percentile_label);
        assert_eq!(percentiles, ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]);
        assert_eq!([1.0, 10.0, 1e4, 1e12].map(reciprocal_label), ["1", "10⁻¹", "10⁻⁴", "10⁻¹²"]);
        assert_eq!([0.2, 1.0, 5.0, 10.0, 1e3, 1e7].map(power_label), ["0.2", "1", "5", "10", "10³", "10⁷"]);
    }
}
