//! Who carries connections: the kernel or this process.

use std::net::IpAddr;

use atoll_balance::Algorithm;

use crate::desired::{Limits, Listener};
use crate::kernel::plan;

/// Who should carry connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    /// The kernel, for every listener that it can do everything for, if we may and it forwards packets; else this process.
    Auto,
    /// This process: no privilege, any feature.
    UserSpace,
    /// The kernel: needs the capability `NET_ADMIN`; connections outlive a restart.
    Kernel,
}

/// Whether this process may tell the kernel what to do.
pub(crate) fn may_use_kernel() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::NET_ADMIN))
}

/// Whether the kernel forwards packets of this family at all. It is its owner who says so.
pub(crate) fn forwards(ip: IpAddr) -> bool {
    let setting = match ip {
        IpAddr::V4(_) => "/proc/sys/net/ipv4/ip_forward",
        IpAddr::V6(_) => "/proc/sys/net/ipv6/conf/all/forwarding",
    };
    std::fs::read_to_string(setting).is_ok_and(|text| text.trim() != "0")
}

/// Why the kernel can't do all that is wanted of this listener; none if it can.
pub(crate) fn why_not_kernel(listener: &Listener) -> Option<&'static str> {
    if let Some(why) = plan::refusal(listener) {
        return Some(why);
    }
    if listener.settings.algorithm != Algorithm::Maglev {
        return Some("it counts no connections");
    }
    if listener.limits != Limits::default() {
        return Some("it knows no limits");
    }
    // A client of this machine's own would not come by its rules for others.
    listener.address.ip().is_loopback().then_some("its rules are not for loopback")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Protocol;

    #[test]
    fn the_kernel_is_asked_only_for_what_it_can_do() {
        let plain = Listener::new("web", Protocol::Tcp, "192.0.2.1:80".parse().unwrap(), Vec::new());
        let mut least = plain.clone();
        least.settings.algorithm = Algorithm::LeastConnections;
        for (listener, want) in [
            (plain.clone(), true),
            (least, false),
            (
                Listener { limits: Limits { per_client: Some(1), ..Limits::default() }, ..plain.clone() },
                false,
            ),
            (Listener { proxy_protocol: true, ..plain.clone() }, false),
            (Listener { address: "127.0.0.1:80".parse().unwrap(), ..plain }, false),
        ] {
            assert_eq!(why_not_kernel(&listener).is_none(), want, "{listener:?}");
        }
    }
}
