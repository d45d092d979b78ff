//! Maximum of a smooth function of one variable.

/// The golden ratio's inverse.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Position and value of the maximum of `f` between `from` and `to`: a scan in `steps` equal steps, because `f` may
/// have flat or impossible stretches (minus infinity), then golden sections around the best.
pub(super) fn maximum(from: f64, to: f64, steps: u32, sections: u32, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let width = (to - from) / f64::from(steps);
    let scanned = (0..=steps).map(|i| from + width * f64::from(i)).map(|x| (x, f(x)));
    let better = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
    let best = scanned.reduce(better).unwrap_or((from, f64::NEG_INFINITY));
    let (mut a, mut b) = ((best.0 - width).max(from), (best.0 + width).min(to));
    let (mut left, mut right) = (b - GOLDEN * (b - a), a + GOLDEN * (b - a));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..sections {
        if at_left > at_right {
            (b, right, at_right) = (right, left, at_left);
            left = b - GOLDEN * (b - a);
            at_left = f(left);
        } else {
            (a, left, at_left) = (left, right, at_right);
            right = a + GOLDEN * (b - a);
            at_right = f(right);
        }
    }
    better(best, better((left, at_left), (right, at_right)))
}

/// Border between a point where `holds` is true and one where it is false.
pub(super) fn border(mut holds_at: f64, mut fails_at: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..40 {
        let middle = 0.5 * (holds_at + fails_at);
        if holds(middle) { holds_at = middle } else { fails_at = middle }
    }
    holds_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_hill_is_found_also_beside_a_cliff() {
        let (x, y) = maximum(0.0, 10.0, 20, 40, |x| if x > 6.0 { f64::NEG_INFINITY } else { -(x - 3.3) * (x - 3.3) });
        assert!((x - 3.3).abs() < 1e-6 && y.abs() < 1e-12, "{x} {y}");
        let (x, _) = maximum(0.0, 10.0, 20, 40, |x| if x > 6.0 { f64::NEG_INFINITY } else { x });
        assert!((x - 6.0).abs() < 1e-6, "{x}");
        assert!((border(0.0, 8.0, |x| x < 5.0) - 5.0).abs() < 1e-9);
    }
}
