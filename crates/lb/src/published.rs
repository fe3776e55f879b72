//! What the built-in balancer should do for one service, as text: the form of the file that a balancer is run from. The hub publishes it,
//! balancers read it, and it is what they go on with while the hub is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value, json};

use crate::config::{self, ConfigError};
use crate::provider::{Key, LiveBackend, Port, Spec};
use crate::wanted::{Protocol, Wanted};

/// Settings of the built-in balancer's own, by annotations of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choices {
    /// Pick whoever has the fewest connections, and not by the client's address.
    pub least_connections: bool,
    /// Tell backends who the client is.
    pub proxy_protocol: bool,
}

/// The listeners of one service on its addresses.
pub fn listeners(key: &Key, spec: &Spec, choices: Choices, addresses: &[IpAddr]) -> Vec<Value> {
    let mut listeners = Vec::new();
    for address in addresses {
        for port in &spec.ports {
            listeners.push(listener(key, spec, choices, *address, port));
        }
    }
    listeners
}

fn listener(key: &Key, spec: &Spec, choices: Choices, address: IpAddr, port: &Port) -> Value {
    let all = || spec.backends.iter().filter(|backend| backend.port_name == port.name);
    // The kernel leads to the same family only; where there are backends of it, the others answer on their own address.
    let same = |backend: &&LiveBackend| backend.address.is_ipv4() == address.is_ipv4();
    let own = all().any(|backend| same(&backend));
    let backends: Vec<&LiveBackend> = all().filter(|backend| !own || same(backend)).collect();
    let mut listener = json!({
        "name": format!("{key}:{}", port.port),
        "protocol": port.protocol.name(),
        "address": SocketAddr::new(address, port.port),
        "backends": backends.iter().map(|backend| entry(backend)).collect::<Vec<_>>(),
    });
    match (port.protocol, check_port(spec, &backends)) {
        (Protocol::Tcp, _) => listener["health"] = json!({}),
        (Protocol::Udp, Some(port)) => listener["health"] = json!({ "port": port }),
        (Protocol::Udp, None) => {}
    }
    if let Some(span) = spec.affinity {
        listener["affinity"] = format!("{}s", span.as_secs().max(1)).into();
    }
    if !spec.shares.is_empty() {
        let share = |weight: u32, tier: u32| json!({ "weight": weight, "tier": tier });
        let shares = spec.shares.iter().map(|(name, one)| (name.clone(), share(one.weight, one.tier)));
        listener["clusters"] = Value::Object(shares.collect::<Map<_, _>>());
    }
    if choices.least_connections {
        listener["algorithm"] = "LeastConnections".into();
    }
    if choices.proxy_protocol && port.protocol == Protocol::Tcp {
        listener["proxyProtocol"] = true.into();
    }
    listener
}

fn entry(backend: &LiveBackend) -> Value {
    let mut entry = json!({ "address": backend.address, "cluster": backend.cluster });
    if !backend.ready {
        entry["draining"] = true.into();
    }
    entry
}

/// Datagrams can't be checked: a TCP port that every one of these backends has too says whether it is there.
fn check_port(spec: &Spec, backends: &[&LiveBackend]) -> Option<u16> {
    let streams = spec.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    let of = |name: &str| -> BTreeSet<SocketAddr> {
        let its = spec.backends.iter().filter(|backend| backend.port_name == name);
        its.map(|backend| backend.address).collect()
    };
    streams.map(|port| of(&port.name)).find_map(|taken| {
        let number = taken.first()?.port();
        let each = |backend: &&LiveBackend| taken.contains(&SocketAddr::new(backend.address.ip(), number));
        backends.iter().all(each).then_some(number)
    })
}

/// What was published before for members that nobody has heard since: it stays.
pub fn recalled(before: &[Value], spec: &Spec) -> Vec<LiveBackend> {
    let mut kept: Vec<LiveBackend> = Vec::new();
    for listener in before {
        let address = listener["address"].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
        let port = spec.ports.iter().find(|port| {
            Some(port.port) == address.map(|address| address.port())
                && listener["protocol"] == port.protocol.name()
        });
        let Some(port) = port else { continue };
        for entry in listener["backends"].as_array().into_iter().flatten() {
            let cluster = entry["cluster"].as_str().unwrap_or_default();
            let address = entry["address"].as_str().and_then(|text| text.parse().ok());
            let Some(address) = address.filter(|_| spec.unheard.contains(cluster)) else { continue };
            let backend = LiveBackend {
                address,
                port_name: port.name.clone(),
                cluster: cluster.to_owned(),
                zone: String::new(),
                ready: entry["draining"] != true,
            };
            if !kept.contains(&backend) {
                kept.push(backend);
            }
        }
    }
    kept
}

/// The text of these listeners.
pub fn text(listeners: &[Value]) -> String {
    json!({ "listeners": listeners }).to_string()
}

/// The listeners of a text, unchecked.
pub fn read(text: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    value["listeners"].as_array().cloned().unwrap_or_default()
}

/// The name that a service's text is published under.
pub fn name(namespace: &str, name: &str) -> String {
    // No name of a namespace or a service has a dot.
    format!("lb.{namespace}.{name}")
}

/// One text for all services, as [`together`] makes it, taken apart again by their names.
pub fn apart(whole: &str) -> BTreeMap<String, String> {
    let mut each: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for listener in read(whole) {
        let service = listener["name"].as_str().and_then(|text| text.rsplit_once(':')?.0.split_once('/'));
        if let Some((namespace, service)) = service {
            each.entry(name(namespace, service)).or_default().push(listener);
        }
    }
    each.into_iter().map(|(name, listeners)| (name, text(&listeners))).collect()
}

/// What can be used of these texts by their names: where one can't, what could before stays. And what is wrong with which.
pub fn usable(
    texts: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, Vec<(String, ConfigError)>) {
    let (mut usable, mut wrong) = (BTreeMap::new(), Vec::new());
    for (name, text) in texts {
        let text = match config::parse(text) {
            Ok(_) => Some(text),
            Err(error) => {
                wrong.push((name.clone(), error));
                before.get(name)
            }
        };
        usable.extend(text.map(|text| (name.clone(), text.clone())));
    }
    (usable, wrong)
}

/// What a balancer does that was given all these texts, as data and as one text. One that can't be used is left out; [`usable`] says why.
pub fn together(texts: &BTreeMap<String, String>) -> (Wanted, String) {
    let (mut wanted, mut listeners): (Wanted, Vec<Value>) = (Wanted::default(), Vec::new());
    for text in texts.values() {
        let Ok(more) = config::parse(text) else { continue };
        for (listener, value) in more.listeners.into_iter().zip(read(text)) {
            // The first of two that want the same place has it: the hub gives a place to one only.
            if wanted.listeners.iter().all(|one| one.key() != listener.key()) {
                wanted.listeners.push(listener);
                listeners.push(value);
            }
        }
    }
    let whole = text(&listeners);
    (wanted, whole)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::provider::Share;

    fn key() -> Key {
        Key { clusterset: "set".into(), namespace: "shop".into(), name: "web".into(), uid: "u".into() }
    }

    fn backend(address: &str, port_name: &str, cluster: &str) -> LiveBackend {
        LiveBackend {
            address: address.parse().unwrap(),
            port_name: port_name.into(),
            cluster: cluster.into(),
            zone: "a".into(),
            ready: true,
        }
    }

    fn spec() -> Spec {
        let port = |name: &str, protocol, port| Port { name: name.into(), protocol, port };
        Spec {
            ports: vec![port("http", Protocol::Tcp, 80), port("dns", Protocol::Udp, 53)],
            backends: vec![
                backend("10.1.0.1:8080", "http", "paris"),
                backend("[fd00::1]:8080", "http", "paris"),
                LiveBackend { ready: false, ..backend("10.2.0.1:8080", "http", "tokyo") },
                backend("10.1.0.1:5353", "dns", "paris"),
            ],
            shares: [("paris".to_owned(), Share { weight: 3, tier: 0 })].into(),
            affinity: Some(Duration::from_secs(10)),
            ..Spec::default()
        }
    }

    fn vips() -> [IpAddr; 2] {
        ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]
    }

    #[test]
    fn what_is_published_is_what_a_balancer_does() {
        let choices = Choices { least_connections: true, proxy_protocol: true };
        let published = text(&listeners(&key(), &spec(), choices, &vips()));
        let wanted = config::parse(&published).unwrap();
        let [web, dns, web6, dns6] = &wanted.listeners[..] else { panic!("{wanted:?}") };
        assert_eq!((&*web.name, web.address), ("shop/web:80", "192.0.2.1:80".parse().unwrap()));
        let who = |listener: &crate::Listener| -> Vec<_> {
            listener.backends.iter().map(|one| (one.address.to_string(), one.draining)).collect()
        };
        assert_eq!(who(web), [("10.1.0.1:8080".into(), false), ("10.2.0.1:8080".into(), true)]);
        assert_eq!(who(web6), [("[fd00::1]:8080".into(), false)]);
        assert_eq!(who(dns6), who(dns), "nobody of its own family: the others are better than none");
        assert_eq!((dns.protocol, dns.check_port), (Protocol::Udp, Some(8080)));
        assert!(web.settings.checks.is_some() && web.proxy_protocol && !dns.proxy_protocol);
        assert_eq!(web.settings.clusters["paris"].weight, Some(3));
        assert_eq!(web.settings.affinity, Some(Duration::from_secs(10)));
        assert_eq!(web.settings.algorithm, atoll_balance::Algorithm::LeastConnections);
    }

    #[test]
    fn what_nobody_has_heard_stays_and_nothing_else_does() {
        let before = listeners(&key(), &spec(), Choices::default(), &vips());
        let now = Spec { backends: Vec::new(), unheard: ["paris".to_owned()].into(), ..spec() };
        let kept: Vec<_> =
            recalled(&before, &now).into_iter().map(|one| (one.address.to_string(), one.port_name)).collect();
        let want = [("10.1.0.1:8080", "http"), ("10.1.0.1:5353", "dns"), ("[fd00::1]:8080", "http")];
        assert_eq!(kept, want.map(|(address, name)| (address.to_owned(), name.to_owned())));
        assert_eq!(recalled(&before, &Spec { unheard: BTreeSet::new(), ..now }), []);
    }

    #[test]
    fn a_text_that_cannot_be_used_leaves_what_could_before() {
        let good = text(&listeners(&key(), &spec(), Choices::default(), &vips()));
        let (_, whole) = together(&BTreeMap::from([("lb.shop.web".to_owned(), good.clone())]));
        let before = apart(&whole);
        assert_eq!(before.keys().collect::<Vec<_>>(), ["lb.shop.web"]);
        let newer = good.replace("\"listeners\"", "\"hints\":1,\"listeners\"");
        for (bad, of) in [(&*newer, "lb.shop.web"), ("", "lb.shop.web"), ("{", "lb.shop.new")] {
            let texts = BTreeMap::from([(of.to_owned(), bad.to_owned())]);
            let (now, wrong) = usable(&texts, &before);
            assert_eq!(wrong.len(), 1, "{bad}");
            let want = before.get(of).map(|text| config::parse(text).unwrap());
            assert_eq!(now.get(of).map(|text| config::parse(text).unwrap()), want);
        }
        assert_eq!(usable(&BTreeMap::new(), &before), (BTreeMap::new(), Vec::new()), "gone is gone");
    }

    #[test]
    fn one_bad_text_leaves_out_itself_only_and_the_whole_is_a_file() {
        let good = text(&listeners(&key(), &spec(), Choices::default(), &vips()));
        let bad = "listeners: [{}]".to_owned();
        let texts = BTreeMap::from([
            ("bad".to_owned(), bad),
            ("good".into(), good.clone()),
            ("twin".into(), good.clone()),
        ]);
        let (usable, wrong) = usable(&texts, &BTreeMap::new());
        assert_eq!((usable.len(), &*wrong[0].0, wrong.len()), (2, "bad", 1));
        let (wanted, whole) = together(&usable);
        assert_eq!((wanted.listeners.len(), config::parse(&whole)), (4, config::parse(&good)));
        assert_eq!(together(&texts), (wanted, whole));
    }
}
