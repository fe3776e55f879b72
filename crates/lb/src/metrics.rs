//! What is counted, per listener, cluster and backend, as Prometheus reads it.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::balancer::Unbound;
use crate::desired::Listener;
use crate::userspace::live::{BackendState, Live, lock};

/// One listener, for whoever looks.
#[derive(Debug, Clone)]
pub(crate) struct ListenerStatus {
    pub(crate) listener: Arc<Listener>,
    pub(crate) live: Arc<Live>,
    pub(crate) backends: Vec<Arc<BackendState>>,
    pub(crate) unbound: Option<Unbound>,
    pub(crate) by_kernel: bool,
    /// It is not one that only finishes.
    pub(crate) wanted: bool,
}

/// All listeners, for whoever looks.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    all: Mutex<Vec<ListenerStatus>>,
    /// Why the last list of listeners was not taken.
    refused: Mutex<Option<String>>,
    /// Why it is not up to date.
    stale: Mutex<Option<String>>,
    told: AtomicBool,
    stopping: AtomicBool,
}

impl Monitor {
    pub(crate) fn show(&self, all: impl Iterator<Item = ListenerStatus>) {
        *lock(&self.all) = all.collect();
        self.told.store(true, Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(crate) fn stale(&self, why: Option<String>) {
        *lock(&self.stale) = why;
    }

    pub(crate) fn refuse(&self, why: Option<String>) {
        *lock(&self.refused) = why;
    }

    /// A line about how it goes.
    pub(crate) fn ready(&self) -> Result<String, String> {
        if self.stopping.load(Relaxed) {
            return Err("stopping: no new clients".to_owned());
        }
        if !self.told.load(Relaxed) {
            let why = lock(&self.stale).as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            return Err(format!("no configuration has been received yet{why}"));
        }
        let all: Vec<ListenerStatus> = lock(&self.all).iter().filter(|shown| shown.wanted).cloned().collect();
        let unbound: Vec<_> = all.iter().filter_map(|shown| shown.unbound.as_ref()).collect();
        if let Some(first) = unbound.first() {
            let Unbound { name, address, why, hint } = first;
            return Err(format!(
                "{} of {} listeners cannot listen; the first is {name} on {address}: {why} ({hint})",
                unbound.len(),
                all.len()
            ));
        }
        let mut note = String::new();
        if let Some(why) = &*lock(&self.refused) {
            note += &format!("; the new configuration was refused: {why}");
        }
        if let Some(why) = &*lock(&self.stale) {
            note += &format!("; keeping the last configuration: {why}");
        }
        let by_kernel = all.iter().filter(|shown| shown.by_kernel).count();
        Ok(format!(
            "ok: {} listeners, {by_kernel} carried by the kernel and {} by this process{note}",
            all.len(),
            all.len() - by_kernel,
        ))
    }

    /// The page for Prometheus.
    pub(crate) fn page(&self) -> String {
        let mut registry = Registry::with_prefix("atoll_lb");
        let refused = lock(&self.refused).is_some();
        registry.register_collector(Box::new(Page { all: lock(&self.all).clone(), refused }));
        let mut text = String::new();
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

#[derive(Debug)]
struct Page {
    all: Vec<ListenerStatus>,
    refused: bool,
}

/// With whether it is also known of what the kernel carries.
type OfBackend = (&'static str, &'static str, bool, fn(&BackendState) -> u64);
type OfListener = (&'static str, &'static str, fn(&Live) -> u64);

const BACKEND_COUNTERS: [OfBackend; 4] = [
    ("connections", "Connections or flows that came about", true, |one| one.opened.load(Relaxed)),
    ("failed_connections", "Connections that did not come about", false, |one| one.failed.load(Relaxed)),
    ("to_backend_bytes", "Carried to the backend", false, |one| one.to_backend.load(Relaxed)),
    ("to_client_bytes", "Carried to clients", false, |one| one.to_client.load(Relaxed)),
];
const LISTENER_COUNTERS: [OfListener; 2] = [
    ("over_limit", "Clients that were sent away because there were too many", |live| {
        live.over_limit.load(Relaxed)
    }),
    ("nobody", "Clients that were sent away because no backend took them", |live| live.nobody.load(Relaxed)),
];

impl Page {
    fn backends(&self) -> impl Iterator<Item = (&ListenerStatus, &Arc<BackendState>)> {
        self.all.iter().flat_map(|shown| shown.backends.iter().map(move |backend| (shown, backend)))
    }
}

type Label<'a> = (&'static str, &'a str);

impl ListenerStatus {
    /// Which listener: a service has one for each of its addresses.
    fn labels<'a>(&'a self, address: &'a str) -> [Label<'a>; 3] {
        [
            ("listener", &*self.listener.name),
            ("protocol", self.listener.protocol.name()),
            ("address", address),
        ]
    }
}

/// Which listener, and which backend of it; `addresses` of both.
fn labels<'a>(
    shown: &'a ListenerStatus,
    backend: &'a BackendState,
    [listener, address]: &'a [String; 2],
) -> [Label<'a>; 5] {
    let [name, protocol, listener] = shown.labels(listener);
    [name, protocol, listener, ("cluster", &*backend.cluster), ("backend", address)]
}

fn addresses(shown: &ListenerStatus, backend: &BackendState) -> [String; 2] {
    [shown.listener.address.to_string(), backend.address.to_string()]
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, by_kernel_too, count) in BACKEND_COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (shown, backend) in self.backends().filter(|(shown, _)| by_kernel_too || !shown.by_kernel) {
                let addresses = addresses(shown, backend);
                let labels = labels(shown, backend, &addresses);
                ConstCounter::new(count(backend)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Connections or flows that are open";
        let mut open = encoder.encode_descriptor("open_connections", help, None, MetricType::Gauge)?;
        for (shown, backend) in self.backends().filter(|(shown, _)| !shown.by_kernel) {
            let addresses = addresses(shown, backend);
            let labels = labels(shown, backend, &addresses);
            let count = i64::try_from(backend.open.load(Relaxed)).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(open.encode_family(&labels)?)?;
        }
        let help = "1 for how a backend stands";
        let mut standing = encoder.encode_descriptor("backend_standing", help, None, MetricType::Gauge)?;
        for (shown, backend) in self.backends() {
            let addresses = addresses(shown, backend);
            let [name, protocol, address, cluster, backend_address] = labels(shown, backend, &addresses);
            let labels =
                [name, protocol, address, cluster, backend_address, ("standing", backend.standing())];
            ConstGauge::new(1_i64).encode(standing.encode_family(&labels)?)?;
        }
        let help = "1 for who carries a listener's connections";
        let mut carrier = encoder.encode_descriptor("carrier", help, None, MetricType::Gauge)?;
        for shown in &self.all {
            let address = shown.listener.address.to_string();
            let [name, protocol, address] = shown.labels(&address);
            let who = if shown.by_kernel { "kernel" } else { "user-space" };
            let labels = [name, protocol, address, ("carrier", who)];
            ConstGauge::new(1_i64).encode(carrier.encode_family(&labels)?)?;
        }
        for (name, help, count) in LISTENER_COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for shown in &self.all {
                let address = shown.listener.address.to_string();
                let labels = shown.labels(&address);
                ConstCounter::new(count(&shown.live)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "1 if the newest configuration was refused and the one before is in force";
        let refused = ConstGauge::new(i64::from(self.refused));
        refused.encode(encoder.encode_descriptor("configuration_refused", help, None, MetricType::Gauge)?)
    }
}
