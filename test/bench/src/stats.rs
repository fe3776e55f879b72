//! What a series of samples comes to: percentiles by nearest rank, and ratios of two series of one run.

use serde::{Deserialize, Serialize};

/// A series in short. Milliseconds throughout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many samples.
    pub samples: usize,
    /// Half of them took at most this long.
    pub p50: f64,
    /// 99 in a hundred took at most this long; the longest where there are fewer than a hundred.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// How many times as long ours took as the floor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the medians.
    pub p50: f64,
    /// Of the 99th percentiles.
    pub p99: f64,
    /// The median of the ratios round by round: the machine drifts between rounds, hardly within one.
    pub paired: f64,
}

/// The smallest sample that at least `percent` of a hundred are not above; none of an empty series.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

impl Summary {
    /// Of `samples`; none when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let at = |percent| percentile(samples, percent);
        Some(Self { samples: samples.len(), p50: at(50.0)?, p99: at(99.0)?, max: at(100.0)? })
    }
}

impl Ratio {
    /// Of two series whose samples were taken alternately, the nth of each in the nth round.
    pub fn of(ours: &[f64], floor: &[f64]) -> Option<Self> {
        let of = |percent| quotient(percentile(ours, percent)?, percentile(floor, percent)?);
        let rounds: Vec<f64> = ours.iter().zip(floor).filter_map(|(&o, &f)| quotient(o, f)).collect();
        Some(Self { p50: of(50.0)?, p99: of(99.0)?, paired: percentile(&rounds, 50.0)? })
    }
}

/// A time of nothing, or less (the event overtook the answer), is no measure of anything.
fn quotient(ours: f64, floor: f64) -> Option<f64> {
    (floor > 0.0).then(|| ours / floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_go_by_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (samples, percent, want) in [
            (&hundred[..], 50.0, Some(50.0)),
            (&hundred, 99.0, Some(99.0)),
            (&hundred, 100.0, Some(100.0)),
            (&hundred, 0.0, Some(1.0)),
            (&[3.0, 1.0, 2.0], 50.0, Some(2.0)),
            (&[3.0, 1.0, 2.0], 99.0, Some(3.0)),
            (&[7.0], 50.0, Some(7.0)),
            (&[], 50.0, None),
        ] {
            assert_eq!(percentile(samples, percent), want, "{percent} of {samples:?}");
        }
    }

    #[test]
    fn a_drifting_machine_does_not_show_in_the_paired_ratio() {
        let floor = [1.0, 2.0, 4.0, 8.0, 16.0];
        let ours: Vec<f64> = floor.iter().map(|f| f * 1.2).collect();
        let ratio = Ratio::of(&ours, &floor).unwrap();
        for value in [ratio.p50, ratio.p99, ratio.paired] {
            assert!((value - 1.2).abs() < 1e-9, "{ratio:?}");
        }
        // One floor sample hit by a hiccup moves the 99th percentile and not the paired median.
        let hiccup = Ratio::of(&ours, &[1.0, 2.0, 4.0, 8.0, 160.0]).unwrap();
        assert!(hiccup.p99 < 0.2 && (hiccup.paired - 1.2).abs() < 1e-9, "{hiccup:?}");
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(Ratio::of(&[1.0], &[0.0]), None);
        assert_eq!(Ratio::of(&[], &[]), None);
        assert_eq!(Summary::of(&[]), None);
    }
}
