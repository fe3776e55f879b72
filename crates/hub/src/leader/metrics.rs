//! What can be measured, in Prometheus' text format. Times are in milliseconds: that is the scale of the promise.

use std::time::Duration;

use atoll_engine::names::ClusterId;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::services::brain::Propagation;

/// From one millisecond to the time at which a person calls it broken.
const MILLISECONDS: [f64; 14] =
    [1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0, 30000.0];
const PLAN_MILLISECONDS: [f64; 8] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 20.0, 100.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Pair {
    source: String,
    target: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Write {
    cluster: String,
    kind: &'static str,
    verb: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Member {
    cluster: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refusal {
    cluster: String,
    reason: &'static str,
}

/// All metrics of a hub.
pub(crate) struct Metrics {
    registry: Registry,
    propagation: Family<Pair, Histogram>,
    writes: Family<Write, Counter>,
    up: Family<Member, Gauge>,
    problems: Family<Member, Counter>,
    refused: Family<Refusal, Gauge>,
    dirty: Gauge,
    unwritten: Gauge,
    plan: Histogram,
    memory_writes: Counter,
    leader: Gauge,
}

/// What an audit log has written and lost.
#[derive(Debug)]
struct Audited(atoll_audit::Log);

impl Collector for Audited {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, count) in [
            ("audit_events", "Lines written to the audit log", self.0.written()),
            (
                "audit_dropped",
                "Lines that the audit log lost: its disk is full, failed or was too slow",
                self.0.dropped(),
            ),
        ] {
            let counter = ConstCounter::new(count);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Metrics {
    pub(crate) fn new(audit: Option<&atoll_audit::Log>) -> Self {
        let mut registry = Registry::with_prefix("atoll");
        if let Some(audit) = audit {
            registry.register_collector(Box::new(Audited(audit.clone())));
        }
        let propagation = Family::<Pair, Histogram>::new_with_constructor(|| Histogram::new(MILLISECONDS));
        let (writes, up, problems) = (Family::default(), Family::default(), Family::default());
        let (dirty, unwritten, memory_writes) = (Gauge::default(), Gauge::default(), Counter::default());
        let (plan, leader) = (Histogram::new(PLAN_MILLISECONDS), Gauge::default());
        registry.register(
            "propagation_milliseconds",
            "From a slice's change in the source to its write in the target",
            propagation.clone(),
        );
        registry.register("member_writes", "Writes in a member", writes.clone());
        registry.register("member_up", "1 while the member's API answers", up.clone());
        registry.register("member_problems", "Problems that an operator has to solve", problems.clone());
        let refused = Family::default();
        registry.register(
            "refused_services",
            "Services of which a member's endpoints, or its export, are refused, by reason",
            refused.clone(),
        );
        registry.register("dirty_services", "Services that wait for a plan", dirty.clone());
        registry.register("unwritten_services", "Plans that wait for the hub's API", unwritten.clone());
        registry.register("plan_milliseconds", "Time to plan a batch of services", plan.clone());
        registry.register("memory_writes", "Writes of what is remembered", memory_writes.clone());
        registry.register("leader", "1 while this hub leads", leader.clone());
        Self {
            registry,
            propagation,
            writes,
            up,
            problems,
            refused,
            dirty,
            unwritten,
            plan,
            memory_writes,
            leader,
        }
    }

    pub(crate) fn propagated(&self, propagation: &Propagation) {
        let pair = Pair { source: propagation.source.to_string(), target: propagation.target.to_string() };
        self.propagation.get_or_create(&pair).observe(milliseconds(propagation.took));
    }

    pub(crate) fn wrote(&self, cluster: &ClusterId, kind: &'static str, verb: &'static str) {
        self.writes.get_or_create(&Write { cluster: cluster.to_string(), kind, verb }).inc();
    }

    pub(crate) fn up(&self, cluster: &ClusterId, up: bool) {
        self.up.get_or_create(&member(cluster)).set(i64::from(up));
    }

    pub(crate) fn problem(&self, cluster: &ClusterId) {
        self.problems.get_or_create(&member(cluster)).inc();
    }

    /// How many services of which member are refused, by reason; all of it.
    pub(crate) fn refusals(&self, counts: impl Iterator<Item = (ClusterId, &'static str, usize)>) {
        self.refused.clear();
        for (cluster, reason, count) in counts {
            let refusal = Refusal { cluster: cluster.to_string(), reason };
            self.refused.get_or_create(&refusal).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn gone(&self, cluster: &ClusterId) {
        self.up.remove(&member(cluster));
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.plan.observe(milliseconds(took));
    }

    pub(crate) fn waiting(&self, dirty: usize, unwritten: usize) {
        self.dirty.set(i64::try_from(dirty).unwrap_or(i64::MAX));
        self.unwritten.set(i64::try_from(unwritten).unwrap_or(i64::MAX));
    }

    pub(crate) fn remembered(&self) {
        self.memory_writes.inc();
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
        if !leads {
            self.up.clear(); // a standby knows nothing of members
        }
    }

    /// The page for Prometheus.
    pub(crate) fn page(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

fn member(cluster: &ClusterId) -> Member {
    Member { cluster: cluster.to_string() }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
