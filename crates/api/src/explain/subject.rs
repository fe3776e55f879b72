//! What a person asks about: a service, a name as clients use it, or an address.

use std::fmt;
use std::net::IpAddr;

/// What a person asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// An address.
    Address(IpAddr),
    /// A service.
    Service {
        /// Its namespace, if the text says it.
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// The cluster, for the name of one cluster's endpoints.
        cluster: Option<String>,
        /// The hostname of an endpoint, for the name of a single one.
        hostname: Option<String>,
    },
}

/// A text that is no service, name or address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSubject(String);

impl fmt::Display for BadSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no service, DNS name or address; write NAME, NAMESPACE/NAME, NAME.NAMESPACE.svc.clusterset.local or an IP address",
            self.0
        )
    }
}

impl std::error::Error for BadSubject {}

impl Subject {
    /// Reads what a person writes: `web`, `shop/web`, `web.shop`, `web.shop.svc`, `web.shop.svc.clusterset.local`,
    /// `pod.paris.web.shop.svc.clusterset.local`, `web.shop.svc.cluster.local`, `10.1.0.7`, `10.1.0.7:8080`, `fd00::1`, `[fd00::1]:8080`.
    ///
    /// ```
    /// # use atoll_api::explain::Subject;
    /// let Ok(Subject::Service { namespace, name, .. }) = Subject::parse("web.shop.svc.clusterset.local") else { panic!() };
    /// assert_eq!((namespace.as_deref(), name.as_str()), (Some("shop"), "web"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, BadSubject> {
        let bad = || BadSubject(text.chars().take(100).collect());
        if let Some(address) = address(text) {
            return Ok(Self::Address(address));
        }
        let whole = |namespace: Option<&str>, name: &str, cluster: Option<&str>, hostname: Option<&str>| {
            let all = [namespace, Some(name), cluster, hostname];
            let good = all.into_iter().flatten().all(is_label);
            good.then(|| Self::Service {
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
                cluster: cluster.map(str::to_owned),
                hostname: hostname.map(str::to_owned),
            })
        };
        if let Some((namespace, name)) = text.split_once('/') {
            return whole(Some(namespace), name, None, None).ok_or_else(bad);
        }
        let labels: Vec<&str> = text.strip_suffix('.').unwrap_or(text).split('.').collect();
        let subject = match labels.as_slice() {
            [name] => whole(None, name, None, None),
            [name, namespace]
            | [name, namespace, "svc"]
            | [name, namespace, "svc", "clusterset" | "cluster", "local"] => {
                whole(Some(namespace), name, None, None)
            }
            // One endpoint of a headless service, and with its cluster if it has the same hostname in several.
            [hostname, cluster, name, namespace, "svc", "clusterset", "local"] => {
                whole(Some(namespace), name, Some(cluster), Some(hostname))
            }
            [cluster, name, namespace, "svc", "clusterset", "local"] => {
                whole(Some(namespace), name, Some(cluster), None)
            }
            [hostname, name, namespace, "svc"] | [hostname, name, namespace, "svc", "cluster", "local"] => {
                whole(Some(namespace), name, None, Some(hostname))
            }
            _ => None,
        };
        subject.ok_or_else(bad)
    }
}

/// With a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let of_socket = || text.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip());
    bare.parse().ok().or_else(of_socket)
}

/// An RFC 1123 label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_service_or_an_address_is_understood() {
        let service = |namespace: &str, name: &str, cluster: &str, hostname: &str| {
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let (namespace, cluster, hostname) = (some(namespace), some(cluster), some(hostname));
            Ok(Subject::Service { namespace, name: name.to_owned(), cluster, hostname })
        };
        let address = |text: &str| Ok(Subject::Address(text.parse().unwrap()));
        for (text, want) in [
            ("web", service("", "web", "", "")),
            ("shop/web", service("shop", "web", "", "")),
            ("web.shop", service("shop", "web", "", "")),
            ("web.shop.svc", service("shop", "web", "", "")),
            ("web.shop.svc.clusterset.local", service("shop", "web", "", "")),
            ("web.shop.svc.clusterset.local.", service("shop", "web", "", "")),
            ("web.shop.svc.cluster.local", service("shop", "web", "", "")),
            ("paris.web.shop.svc.clusterset.local", service("shop", "web", "paris", "")),
            ("pod-0.paris.web.shop.svc.clusterset.local", service("shop", "web", "paris", "pod-0")),
            ("pod-0.web.shop.svc.cluster.local", service("shop", "web", "", "pod-0")),
            ("10.1.0.7", address("10.1.0.7")),
            ("10.1.0.7:8080", address("10.1.0.7")),
            ("fd00::1", address("fd00::1")),
            ("[fd00::1]:80", address("fd00::1")),
        ] {
            assert_eq!(Subject::parse(text), want, "{text}");
        }
        for text in ["", "/", "a/b/c", "Web", "web.shop.svc.example.com", "-web", "10.1.0.7/24", "a b"] {
            assert!(Subject::parse(text).is_err(), "{text}");
        }
    }
}
