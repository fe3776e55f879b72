//! Who is measured: seven ways from the client to the same backends. The configurations are whole files beside this one.

use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// The balancer's address, as clients see it.
const FRONT: &str = "10.71.0.1:8080";
/// The backends, all of one process.
pub(super) const BACKENDS: [&str; 4] = ["10.72.0.11", "10.72.0.12", "10.72.0.13", "10.72.0.14"];
pub(super) const PORT: u16 = 8080;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subject {
    /// No balancer: the same cables, and the client knows the backends.
    Direct,
    /// One rule of nftables.
    BareRule,
    /// `atoll lb`, carried by the kernel.
    AtollKernel,
    /// `atoll lb`, carried by its process.
    AtollUserSpace,
    /// Splicing when it thinks that it pays.
    HaProxy,
    /// Splicing always: no one setting is its best for both short exchanges and streams.
    HaProxySplicing,
    Nginx,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "no balancer",
            Self::BareRule => "bare nftables rule",
            Self::AtollKernel => "atoll lb, kernel",
            Self::AtollUserSpace => "atoll lb, user space",
            Self::HaProxy => "HAProxy",
            Self::HaProxySplicing => "HAProxy, splicing",
            Self::Nginx => "nginx stream",
        })
    }
}

impl Subject {
    pub(super) const ALL: [Self; 7] = [
        Self::Direct,
        Self::BareRule,
        Self::AtollKernel,
        Self::AtollUserSpace,
        Self::HaProxy,
        Self::HaProxySplicing,
        Self::Nginx,
    ];

    /// The name and text of its configuration.
    pub(super) fn configuration(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Direct => None,
            Self::BareRule => Some(("bare.nft", include_str!("configs/bare.nft"))),
            Self::AtollKernel | Self::AtollUserSpace => Some(("lb.yaml", include_str!("configs/lb.yaml"))),
            Self::HaProxy => Some(("haproxy.cfg", include_str!("configs/haproxy.cfg"))),
            Self::HaProxySplicing => Some(("haproxy-splice.cfg", include_str!("configs/haproxy-splice.cfg"))),
            Self::Nginx => Some(("nginx.conf", include_str!("configs/nginx.conf"))),
        }
    }

    /// The program that sets it up or is it, with `folder` for its configuration.
    pub(super) fn program(self, atoll: &Path, folder: &Path) -> Option<Vec<String>> {
        let file = folder.join(self.configuration()?.0).display().to_string();
        let atoll = atoll.display().to_string();
        let words: &[&str] = match self {
            Self::Direct => return None,
            Self::BareRule => &["nft", "-f", &file],
            Self::AtollKernel => &[&atoll, "lb", "--data-path", "kernel", "--config", &file],
            Self::AtollUserSpace => &[&atoll, "lb", "--data-path", "user-space", "--config", &file],
            Self::HaProxy | Self::HaProxySplicing => &["haproxy", "-f", &file],
            Self::Nginx => &["nginx", "-p", &folder.display().to_string(), "-c", &file],
        };
        Some(words.iter().map(ToString::to_string).collect())
    }

    /// Whether bytes pass through the memory of a process of its own, whose processor time is its cost.
    pub(super) fn is_a_process(self) -> bool {
        match self {
            Self::AtollUserSpace | Self::HaProxy | Self::HaProxySplicing | Self::Nginx => true,
            Self::Direct | Self::BareRule | Self::AtollKernel => false,
        }
    }

    /// Where clients connect to, in turn.
    pub(super) fn targets(self) -> Vec<SocketAddr> {
        let texts = match self {
            Self::Direct => BACKENDS.map(|address| format!("{address}:{PORT}")).to_vec(),
            _ => vec![FRONT.to_owned()],
        };
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_names_the_same_addresses() {
        for subject in Subject::ALL {
            let Some((name, text)) = subject.configuration() else { continue };
            let (front, port) = FRONT.split_once(':').unwrap();
            assert!(text.contains(front) && text.contains(port), "{name}");
            assert!(BACKENDS.iter().all(|backend| text.contains(backend)), "{name}");
            assert!(subject.program(Path::new("atoll"), Path::new("/tmp")).is_some(), "{name}");
        }
        assert_eq!(Subject::Direct.targets().len(), BACKENDS.len());
        assert_eq!(Subject::Nginx.targets(), [FRONT.parse().unwrap()]);
    }
}
