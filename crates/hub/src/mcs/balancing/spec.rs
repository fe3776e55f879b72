//! What a provider is asked for: the engine's word on ports and endpoints, and the user's on shares.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atoll_api::names::annotation::balancing::{
    ADDRESSES, ALGORITHM, LEAST_CONNECTIONS, MAGLEV, SHARE_WITH, TIERS, WEIGHTS,
};
use atoll_engine::facts::Protocol;
use atoll_engine::plan::Balanced;
use atoll_lb::provider::{self, Port, Share, Spec};
use atoll_lb_kube::Sharing;

/// What kubectl notes for itself is no setting.
const NOTED_BY_KUBECTL: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All that is wanted of the balancer.
pub(super) fn spec(balanced: &Balanced, annotations: &BTreeMap<String, String>) -> Spec {
    let names = port_names(balanced);
    let ports = names.iter().filter_map(|(&(protocol, port), name)| {
        let protocol = match protocol {
            Protocol::Tcp => atoll_lb::Protocol::Tcp,
            Protocol::Udp => atoll_lb::Protocol::Udp,
            Protocol::Sctp => return None, // the engine offers none
        };
        Some(Port { name: name.clone(), protocol, port })
    });
    let backends = balanced.backends.iter().filter_map(|((place, address), backend)| {
        Some(provider::Backend {
            address: *address,
            port_name: names.get(place)?.clone(),
            cluster: backend.cluster.to_string(),
            zone: backend.zone.as_ref().map(ToString::to_string).unwrap_or_default(),
            ready: backend.ready,
        })
    });
    let annotations = annotations.iter().filter(|(name, _)| *name != NOTED_BY_KUBECTL);
    let annotations: BTreeMap<_, _> = annotations.map(|(name, text)| (name.clone(), text.clone())).collect();
    Spec {
        ports: ports.collect(),
        backends: backends.collect(),
        shares: shares(&annotations).0,
        annotations,
        affinity: balanced.affinity.map(|seconds| Duration::from_secs(seconds.into())),
        unheard: balanced.unheard.iter().map(ToString::to_string).collect(),
    }
}

/// A name of its own for each: providers may call different ports alike.
fn port_names(balanced: &Balanced) -> BTreeMap<(Protocol, u16), String> {
    let mut used = BTreeSet::new();
    let mut names = BTreeMap::new();
    for (&(protocol, port), name) in &balanced.ports {
        let mut name = name.to_string();
        if !used.insert(name.clone()) {
            name = format!("{name}-{}-{port}", protocol.as_str().to_lowercase());
            used.insert(name.clone());
        }
        names.insert((protocol, port), name);
    }
    names
}

/// What each cluster gets, and what of it is invalid.
fn shares(annotations: &BTreeMap<String, String>) -> (BTreeMap<String, Share>, Vec<String>) {
    let (mut shares, mut odd) = (BTreeMap::new(), Vec::new());
    for (key, example) in [(WEIGHTS, "paris=3,tokyo=1"), (TIERS, "paris=0,tokyo=1")] {
        let text = annotations.get(key).map(String::as_str).unwrap_or_default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let parsed = part.split_once('=').and_then(|(name, number)| {
                Some((name.trim(), number.trim().parse::<u32>().ok()?)).filter(|(name, _)| !name.is_empty())
            });
            let Some((name, number)) = parsed else {
                odd.push(format!("invalid part {part:?} of {key}; write it as {example}"));
                continue;
            };
            let share = shares.entry(name.to_owned()).or_insert(Share { weight: 1, tier: 0 });
            if key == WEIGHTS { share.weight = number } else { share.tier = number }
        }
    }
    (shares, odd)
}

/// What in a service's annotations can't be used.
pub(crate) fn remarks(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let mut odd = shares(annotations).1;
    if let Some(other) =
        annotations.get(ALGORITHM).filter(|text| *text != MAGLEV && *text != LEAST_CONNECTIONS)
    {
        odd.push(format!("invalid value {other:?} of {ALGORITHM}: {MAGLEV} or {LEAST_CONNECTIONS}"));
    }
    let asked = annotations.get(ADDRESSES).map(String::as_str).unwrap_or_default().split(',').map(str::trim);
    odd.extend(
        asked
            .filter(|text| !text.is_empty() && text.parse::<std::net::IpAddr>().is_err())
            .map(|text| format!("invalid address {text:?} in {ADDRESSES}")),
    );
    odd.extend(Sharing::parse(annotations.get(SHARE_WITH).map(String::as_str).unwrap_or_default()).1);
    odd
}

#[cfg(test)]
mod tests {
    use atoll_engine::names::{ClusterId, PortName};
    use atoll_engine::plan::Backend;

    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_provider_is_told_ports_backends_and_shares() {
        let name = |text: &str| PortName::parse(text).unwrap();
        let cluster = ClusterId::parse("paris").unwrap();
        let balanced = Balanced {
            ports: [((Protocol::Tcp, 80), name("http")), ((Protocol::Tcp, 8080), name("http"))].into(),
            backends: [(
                ((Protocol::Tcp, 8080), "10.1.0.1:9000".parse().unwrap()),
                Backend { cluster: cluster.clone(), zone: None, ready: true },
            )]
            .into(),
            affinity: Some(7),
            unheard: [cluster].into(),
            ..Balanced::default()
        };
        let annotations =
            annotated(&[(WEIGHTS, "paris=3, tokyo=1"), (TIERS, "tokyo=1"), (NOTED_BY_KUBECTL, "{}")]);
        let spec = spec(&balanced, &annotations);
        let names: Vec<_> = spec.ports.iter().map(|port| (port.name.as_str(), port.port)).collect();
        assert_eq!(names, [("http", 80), ("http-tcp-8080", 8080)]);
        assert_eq!(spec.backends[0].port_name, "http-tcp-8080");
        assert_eq!(spec.shares["paris"], Share { weight: 3, tier: 0 });
        assert_eq!(spec.shares["tokyo"], Share { weight: 1, tier: 1 });
        assert_eq!((spec.affinity, spec.annotations.len()), (Some(Duration::from_secs(7)), 2));
        assert_eq!(spec.unheard, ["paris".to_owned()].into());
    }

    #[test]
    fn what_is_invalid_is_said() {
        for (key, text, said) in [
            (WEIGHTS, "paris=3,tokyo=1", 0),
            (WEIGHTS, "", 0),
            (WEIGHTS, "paris:3", 1),
            (WEIGHTS, "paris=-1,=2", 2),
            (TIERS, "paris=first", 1),
            (ALGORITHM, "Maglev", 0),
            (ALGORITHM, "Random", 1),
            (ADDRESSES, "10.0.0.1, fd00::1", 0),
            (ADDRESSES, "10.0.0.300", 1),
            (SHARE_WITH, "billing,search/web", 0),
            (SHARE_WITH, "*", 1),
        ] {
            assert_eq!(remarks(&annotated(&[(key, text)])).len(), said, "{key}: {text}");
        }
    }
}
