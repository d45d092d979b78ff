//! Ranks of values, the base of the tests that must not depend on the length of a tail.

/// The rank of each value, from 1; equal values have the mean of their ranks (midranks, Kendall 1945).
pub(crate) fn midranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| a.0 == b.0) {
        for (_, i) in equal {
            ranks[*i] = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        }
        before += equal.len();
    }
    ranks
}

/// Sizes of the groups of equal values, groups of one included.
pub(crate) fn ties(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_rank() {
        assert!(midranks(&[]).is_empty());
        assert_eq!(midranks(&[5.0, 1.0, 5.0, 0.0]), [3.5, 2.0, 3.5, 1.0]);
        assert_eq!(ties(&[5.0, 1.0, 5.0, 0.0]), [1, 1, 2]);
    }
}
