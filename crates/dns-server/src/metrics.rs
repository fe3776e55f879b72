//! What can be measured. Each thread counts for itself; only who reads the page adds up.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atoll_dns::wire::rtype;
use atoll_dns::{Summary, Transport, rcode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::live::Live;

/// The types that are counted by name; the last stands for all others.
const TYPES: [(u16, &str); 9] = [
    (rtype::A, "A"),
    (rtype::AAAA, "AAAA"),
    (rtype::SRV, "SRV"),
    (rtype::TXT, "TXT"),
    (rtype::SOA, "SOA"),
    (rtype::NS, "NS"),
    (rtype::PTR, "PTR"),
    (rtype::ANY, "ANY"),
    (0, "other"),
];
const CODES: [(u16, &str); 7] = [
    (rcode::NO_ERROR, "NOERROR"),
    (rcode::NX_DOMAIN, "NXDOMAIN"),
    (rcode::REFUSED, "REFUSED"),
    (rcode::SERVER_FAILURE, "SERVFAIL"),
    (rcode::FORMAT_ERROR, "FORMERR"),
    (rcode::NOT_IMPLEMENTED, "NOTIMP"),
    (rcode::BAD_VERSION, "BADVERS"),
];
/// Every other name, the clusterset's zone, the cluster's own.
const ZONES: usize = 3;
/// Up to a microsecond, two, four, …, and more than the last.
const BUCKETS: usize = 16;

/// What one thread has counted.
#[derive(Default)]
pub(crate) struct Tally {
    queries: [[[AtomicU64; CODES.len()]; TYPES.len()]; ZONES],
    buckets: [AtomicU64; BUCKETS + 1],
    nanoseconds: AtomicU64,
    truncated: AtomicU64,
    over_tcp: AtomicU64,
    dropped: AtomicU64,
    /// Of strangers who asked too often: not answered, and sent to TCP.
    limited: [AtomicU64; 2],
}

impl Tally {
    pub(crate) fn answered(&self, summary: Summary, transport: Transport, took: Duration) {
        let place = |all: &[(u16, &str)], number| {
            all.iter().position(|(known, _)| *known == number).unwrap_or(all.len() - 1)
        };
        let (rtype, code) = (place(&TYPES, summary.rtype), place(&CODES, summary.rcode));
        add(&self.queries[summary.zone.map_or(0, |zone| zone + 1).min(ZONES - 1)][rtype][code], 1);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let microseconds = nanoseconds.div_ceil(1000).max(1);
        let bucket = u64::BITS - (microseconds - 1).leading_zeros();
        add(&self.buckets[(bucket as usize).min(BUCKETS)], 1);
        add(&self.nanoseconds, nanoseconds);
        add(&self.truncated, u64::from(summary.truncated));
        add(&self.over_tcp, u64::from(transport == Transport::Tcp));
    }

    /// A packet that deserved no answer.
    pub(crate) fn dropped(&self) {
        add(&self.dropped, 1);
    }

    /// A question of a stranger who asks too often: sent to TCP, or not answered at all.
    pub(crate) fn limited(&self, sent_to_tcp: bool) {
        add(&self.limited[usize::from(sent_to_tcp)], 1);
    }
}

/// Each tally has one writer, so that no bus has to be locked.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// All tallies.
pub(crate) struct Metrics {
    tallies: Vec<Arc<Tally>>,
}

impl Metrics {
    pub(crate) fn new(threads: usize) -> Self {
        Self { tallies: (0..threads).map(|_| Arc::default()).collect() }
    }

    pub(crate) fn threads(&self) -> usize {
        self.tallies.len()
    }

    pub(crate) fn tally(&self, thread: usize) -> Arc<Tally> {
        Arc::clone(&self.tallies[thread])
    }

    fn sum(&self, of: impl Fn(&Tally) -> &AtomicU64) -> u64 {
        self.tallies.iter().map(|tally| of(tally).load(Ordering::Relaxed)).sum()
    }

    /// The page for Prometheus.
    pub(crate) fn page(self: &Arc<Self>, live: &Arc<Live>) -> String {
        let mut registry = Registry::with_prefix("atoll_dns");
        registry.register_collector(Box::new(Page { metrics: Arc::clone(self), live: Arc::clone(live) }));
        let mut text = String::new();
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

/// What is added up for one reader.
struct Page {
    metrics: Arc<Metrics>,
    live: Arc<Live>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Page")
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (metrics, snapshot) = (&self.metrics, self.live.snapshot());
        let zones = [snapshot.zone().to_string(), self.live.cluster_zone().unwrap_or_default()];
        let help = "Questions answered, by zone, type and code";
        let mut queries = encoder.encode_descriptor("queries", help, None, MetricType::Counter)?;
        for (place, zone) in ["other", &zones[0], &zones[1]].into_iter().enumerate() {
            for (t, (_, rtype)) in TYPES.into_iter().enumerate() {
                for (c, (_, rcode)) in CODES.into_iter().enumerate() {
                    let count = metrics.sum(|tally| &tally.queries[place][t][c]);
                    if count > 0 {
                        let labels = [("zone", zone), ("type", rtype), ("rcode", rcode)];
                        ConstCounter::new(count).encode(queries.encode_family(&labels)?)?;
                    }
                }
            }
        }
        let mut buckets = Vec::new();
        for number in 0..=BUCKETS {
            let bound = if number < BUCKETS { f64::from(1_u32 << number) } else { f64::INFINITY };
            buckets.push((bound, metrics.sum(|tally| &tally.buckets[number])));
        }
        let answered = buckets.iter().map(|(_, count)| count).sum();
        #[allow(clippy::cast_precision_loss, reason = "a sum of times is no exact number")]
        let sum = metrics.sum(|tally| &tally.nanoseconds) as f64 / 1000.0;
        let help = "From a question read to its answer sent";
        encoder
            .encode_descriptor("answer_microseconds", help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum, answered, &buckets, None)?;
        for (name, help, count) in [
            ("truncated", "Answers that were cut off", metrics.sum(|tally| &tally.truncated)),
            ("tcp_queries", "Questions that came over TCP", metrics.sum(|tally| &tally.over_tcp)),
            ("dropped_packets", "Packets that deserved no answer", metrics.sum(|tally| &tally.dropped)),
        ] {
            ConstCounter::new(count).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Counter,
            )?)?;
        }
        let help = "Questions of sources that asked too often, by what they got";
        let mut limited = encoder.encode_descriptor("rate_limited", help, None, MetricType::Counter)?;
        for (place, got) in ["nothing", "truncated"].into_iter().enumerate() {
            let count = metrics.sum(|tally| &tally.limited[place]);
            ConstCounter::new(count).encode(limited.encode_family(&[("got", got)])?)?;
        }
        let services = i64::try_from(snapshot.services()).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("services", "Services that have a name", services),
            (
                "synced",
                "1 when everything was listed: before, nothing is answered",
                i64::from(snapshot.complete()),
            ),
            ("snapshot_serial", "The serial number of the zone", i64::from(snapshot.serial())),
        ] {
            ConstGauge::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        let help = "How long the cluster's API has not been heard; 0 while it is";
        let age = ConstGauge::new(self.live.age().as_secs_f64());
        age.encode(encoder.encode_descriptor("snapshot_age_seconds", help, None, MetricType::Gauge)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn page(count: impl Fn(&Tally)) -> String {
        let metrics = Arc::new(Metrics::new(2));
        count(&metrics.tally(0));
        count(&metrics.tally(1));
        metrics.page(&Arc::new(Live::new(&Options::default())))
    }

    #[test]
    fn threads_are_added_up() {
        let summary = Summary { zone: Some(0), rtype: rtype::A, rcode: rcode::NO_ERROR, truncated: true };
        let page = page(|tally| {
            tally.answered(summary, Transport::Tcp, Duration::from_micros(3));
            tally.answered(Summary { rtype: 65_000, ..summary }, Transport::Udp, Duration::ZERO);
            tally.dropped();
            tally.limited(true);
        });
        for line in [
            r#"atoll_dns_queries_total{zone="clusterset.local",type="A",rcode="NOERROR"} 2"#,
            r#"atoll_dns_queries_total{zone="clusterset.local",type="other",rcode="NOERROR"} 2"#,
            r#"atoll_dns_answer_microseconds_bucket{le="1.0"} 2"#,
            r#"atoll_dns_answer_microseconds_bucket{le="2.0"} 2"#,
            r#"atoll_dns_answer_microseconds_bucket{le="4.0"} 4"#,
            r#"atoll_dns_answer_microseconds_bucket{le="+Inf"} 4"#,
            "atoll_dns_answer_microseconds_count 4",
            "atoll_dns_truncated_total 4",
            "atoll_dns_tcp_queries_total 2",
            "atoll_dns_dropped_packets_total 2",
            r#"atoll_dns_rate_limited_total{got="nothing"} 0"#,
            r#"atoll_dns_rate_limited_total{got="truncated"} 2"#,
            "atoll_dns_synced 0",
        ] {
            assert!(page.lines().any(|said| said == line), "{line}\n{page}");
        }
    }

    #[test]
    fn times_have_a_place_however_long() {
        let summary = Summary { zone: None, rtype: 0, rcode: rcode::REFUSED, truncated: false };
        let page = page(|tally| tally.answered(summary, Transport::Udp, Duration::from_secs(3600)));
        assert!(page.contains(r#"le="32768.0"} 0"#) && page.contains(r#"le="+Inf"} 2"#), "{page}");
    }
}
