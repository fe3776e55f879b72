//! With root: connections are carried by the kernel, and this process only says where they go.
//!
//! ```text
//!   pictures ─▶ plan: forwards, as data ─▶ tables: one transaction of nftables by netlink, atomic; only the places that moved, if it can be
//!                                          flows: conntrack entries of backends that are lost
//! ```
//!
//! Each forward is a rule that hashes the client into Maglev's table, kept as a map from place to backend. Connections are pinned by conntrack: they
//! outlive a change of the rules and a restart of this process. When it ends, the rules stay.

mod flows;
pub(crate) mod plan;
mod tables;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_balance::Picture;

use crate::desired::{Listener, Protocol};
use plan::{Forward, Plan};

/// What the kernel refused is tried again.
const RETRY: Duration = Duration::from_secs(1);

type Carried = Vec<(Arc<Listener>, Arc<Picture>)>;

/// Connections of a listener that came to a backend.
pub(crate) type Came = ((Protocol, SocketAddr), SocketAddr, u64);

/// Where this process carries connections itself: rules that a former one left would take clients away from it. They may be another
/// balancer's, and so they stay.
pub(crate) async fn warn_of_leftovers() {
    if tables::exist().await.unwrap_or(false) {
        tracing::warn!(
            "the kernel still has rules of a balancer, and matching clients do not reach this process; if no other `atoll lb` is running, remove them with \
             `nft delete table ip atoll_lb; nft delete table ip6 atoll_lb`"
        );
    }
}

/// What the kernel was told last.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    told: Option<Carried>,
    refused: Option<Instant>,
    /// What it holds, as far as we know.
    held: Option<Held>,
    /// What was counted and not yet taken.
    came: Vec<Came>,
}

#[derive(Debug)]
struct Held {
    plan: Plan,
    /// What each place had counted when it was last looked at.
    counted: Vec<Vec<u64>>,
}

impl Kernel {
    /// Makes the kernel carry this; none if it does already. An error is for people.
    pub(crate) async fn carry(&mut self, wanted: Carried) -> Option<Result<(), String>> {
        let same = |told: &Carried| {
            let pairs = told.iter().zip(&wanted);
            told.len() == wanted.len()
                && pairs
                    .into_iter()
                    .all(|(told, now)| Arc::ptr_eq(&told.0, &now.0) && Arc::ptr_eq(&told.1, &now.1))
        };
        if self.told.as_ref().is_some_and(same) && self.refused.is_none_or(|at| at.elapsed() < RETRY) {
            return None;
        }
        let plan = Plan {
            forwards: wanted.iter().map(|(listener, picture)| Forward::new(listener, picture)).collect(),
        };
        self.count().await;
        let outcome = self.hold(plan).await.map_err(|error| error.to_string());
        self.told = Some(wanted);
        self.refused = outcome.is_err().then(Instant::now);
        Some(outcome)
    }

    /// Changes what it holds where that is enough, and replaces it otherwise.
    async fn hold(&mut self, plan: Plan) -> nlink::Result<()> {
        if let Some(held) = self.held.take()
            && held.plan.has_rules_of(&plan)
        {
            match tables::change(&held.plan, &plan).await {
                Ok(()) => {
                    let counted = held.counted_after(&plan);
                    self.held = Some(Held { plan, counted });
                    return Ok(());
                }
                Err(error) => tracing::debug!(%error, "the kernel's tables were changed"),
            }
        }
        tables::replace(&plan).await?;
        self.held = Some(Held { plan, counted: Vec::new() });
        Ok(())
    }

    /// Counts who came by. What comes between this and a change of the rules is not counted.
    pub(crate) async fn count(&mut self) {
        let Some(held) = &mut self.held else { return };
        match tables::counts(&held.plan).await {
            Ok(counted) => {
                let since = held.since(&counted);
                self.came.extend(since);
                held.counted = counted;
            }
            Err(error) => tracing::debug!(%error, "cannot read the kernel's counters"),
        }
    }

    /// What was counted since it was last taken.
    pub(crate) fn take_counts(&mut self) -> Vec<Came> {
        std::mem::take(&mut self.came)
    }

    /// Ends the flows of clients of `listener` to a backend that is lost, so that they find another.
    pub(crate) async fn cut(protocol: Protocol, listener: SocketAddr, backend: SocketAddr) {
        if let Err(error) = flows::end(protocol, listener, backend).await {
            tracing::warn!(%error, %backend, "cannot close the flows of a lost backend");
        }
    }
}

impl Held {
    /// What `counted` is more than what was counted before.
    fn since(&self, counted: &[Vec<u64>]) -> Vec<Came> {
        let mut came: BTreeMap<((Protocol, SocketAddr), SocketAddr), u64> = BTreeMap::new();
        for (number, (forward, places)) in tables::in_order(&self.plan).zip(counted).enumerate() {
            let before = self.counted.get(number);
            for (place, count) in places.iter().enumerate() {
                let before = before.and_then(|before| before.get(place)).copied().unwrap_or(0);
                let key = ((forward.protocol, forward.listener), forward.places[place]);
                *came.entry(key).or_default() += count.saturating_sub(before);
            }
        }
        came.retain(|_, count| *count > 0);
        came.into_iter().map(|((listener, backend), count)| (listener, backend, count)).collect()
    }

    /// What was counted, once the places that move begin from nothing.
    fn counted_after(&self, plan: &Plan) -> Vec<Vec<u64>> {
        let mut counted = self.counted.clone();
        for ((was, is), places) in tables::in_order(&self.plan).zip(tables::in_order(plan)).zip(&mut counted)
        {
            for (place, _) in was.moved(is) {
                places[place] = 0;
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Source;

    fn plan(places: [u16; 4]) -> Plan {
        let backend = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        let forward = Forward {
            protocol: Protocol::Tcp,
            listener: SocketAddr::from(([192, 0, 2, 1], 80)),
            places: places.map(backend).to_vec(),
            by_client: false,
            source: Source::Masquerade,
            seed: 0,
        };
        Plan { forwards: vec![forward] }
    }

    #[test]
    fn what_came_is_the_backends_of_then_and_a_place_that_moves_begins_anew() {
        let ports = |came: Vec<Came>| came.iter().map(|came| (came.1.port(), came.2)).collect::<Vec<_>>();
        let held = Held { plan: plan([1, 1, 2, 2]), counted: vec![vec![5, 0, 7, 0]] };
        assert_eq!(ports(held.since(&[vec![6, 2, 7, 1]])), [(1, 3), (2, 1)]);
        let next = plan([1, 2, 2, 2]);
        let held = Held { plan: plan([1, 1, 2, 2]), counted: vec![vec![6, 2, 7, 1]] };
        let held = Held { counted: held.counted_after(&next), plan: next };
        assert_eq!(held.counted, [[6, 0, 7, 1]]);
        assert_eq!(ports(held.since(&[vec![6, 4, 7, 1]])), [(2, 4)]);
    }
}
