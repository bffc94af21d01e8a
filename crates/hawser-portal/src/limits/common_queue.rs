//! Whether two paths wait in one queue, told from their delays at the same moments (after RFC 8382, in its simplest
//! form).
//!
//! Behind one another's packets both wait as long: the difference of their delays stays while each of them moves. In
//! two queues the difference moves as much as both together.

/// Moments that are needed.
const MOMENTS: usize = 15;
/// How much both delays must move, as a standard deviation in milliseconds: less may be the system's own noise.
const MOVES_MS: f64 = 0.6;
/// The part of both variances that the difference has at most: 1 means two queues, 0 one.
const TOGETHER: f64 = 0.25;

/// Whether these delays, in milliseconds, were of one queue.
pub fn shares_queue(one: &[f64], other: &[f64]) -> bool {
    let moments = one.len().min(other.len());
    if moments < MOMENTS {
        return false;
    }
    let (one, other) = (&one[one.len() - moments..], &other[other.len() - moments..]);
    let difference: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let (a, b, d) = (variance(one), variance(other), variance(&difference));
    a.min(b) >= MOVES_MS * MOVES_MS && d <= TOGETHER * (a + b)
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty moments of a queue that goes up and down, each `shift` moments later, beside a fixed delay.
    fn queue(base: f64, height: f64, shift: usize) -> Vec<f64> {
        let height = |moment: usize| height * ((moment + shift) as f64 * 0.9).sin();
        (0..20).map(|moment| base + height(moment)).collect()
    }

    #[test]
    fn one_queue_is_told_from_two_by_what_moves_together() {
        let table = [
            ("one queue, two bases", queue(10.0, 5.0, 0), queue(40.0, 5.0, 0), true),
            ("a second queue beside", queue(10.0, 5.0, 0), queue(40.0, 6.5, 0), true),
            ("two queues at other times", queue(10.0, 5.0, 0), queue(40.0, 5.0, 2), false),
            ("two queues that move together, one much more", queue(10.0, 2.0, 0), queue(40.0, 8.0, 0), false),
            ("noise", queue(10.0, 0.3, 0), queue(40.0, 0.3, 0), false),
            ("too few moments", queue(10.0, 5.0, 0)[..9].to_vec(), queue(40.0, 5.0, 0), false),
        ];
        for (what, one, other, expect) in table {
            assert_eq!(shares_queue(&one, &other), expect, "{what}");
        }
    }
}
