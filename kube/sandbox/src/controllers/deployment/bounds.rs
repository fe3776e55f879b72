//! How many pods a rollout may have at most, and how many must be available.

use crate::controllers::facts::{Deployment, Strategy};
use serde_json::Value;

/// The bounds of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Pods at most: the wanted ones and the surge.
    pub(super) most: i64,
    /// Available pods at least.
    pub(super) least: i64,
}

impl Bounds {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let wanted = deployment.replicas;
        match &deployment.strategy {
            Strategy::Recreate => Self { most: wanted, least: wanted },
            Strategy::Rolling { surge, unavailable } => {
                let surge = resolve(surge, wanted, true);
                let mut unavailable = resolve(unavailable, wanted, false);
                // Percentages of few pods may both be nothing, and then nothing would ever move.
                if surge == 0 && unavailable == 0 {
                    unavailable = 1;
                }
                Self { most: wanted + surge, least: (wanted - unavailable).max(0) }
            }
        }
    }
}

/// A number, or a percentage of something.
fn resolve(bound: &Value, of: i64, up: bool) -> i64 {
    let percent = bound.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match percent {
        Some(percent) if up => (percent * of + 99) / 100,
        Some(percent) => percent * of / 100,
        None => bound.as_i64().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_round_so_that_a_rollout_moves() {
        for (surge, unavailable, wanted, want) in [
            (json!("25%"), json!("25%"), 4, (5, 3)),
            (json!("25%"), json!("25%"), 1, (2, 1)),
            (json!("25%"), json!("25%"), 10, (13, 8)),
            (json!(0), json!("10%"), 3, (3, 2)),
            (json!(2), json!(0), 3, (5, 3)),
            (json!(0), json!(5), 3, (3, 0)),
            (json!("50%"), json!(0), 0, (0, 0)),
        ] {
            let deployment = Deployment::read(&json!({"spec": {"replicas": wanted, "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}}));
            let bounds = Bounds::of(&deployment);
            assert_eq!((bounds.most, bounds.least), want, "{surge} {unavailable} of {wanted}");
        }
    }
}
