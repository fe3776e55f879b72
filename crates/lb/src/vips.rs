//! Puts listeners' addresses on an interface, tells the neighbours, and takes away what it put there. What was there before is not
//! ours.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use nlink::netlink::addr::{Ipv4Address, Ipv6Address};
use nlink::netlink::{Connection, Route};

use crate::announce;
use crate::desired::Desired;

/// The addresses that we have put on interfaces.
#[derive(Debug, Default)]
pub(crate) struct Vips {
    wanted: BTreeSet<(Arc<str>, IpAddr)>,
    ours: BTreeSet<(Arc<str>, IpAddr)>,
    /// Those that could not be put there, which is said once.
    failed: BTreeSet<(Arc<str>, IpAddr)>,
}

impl Vips {
    /// These were put there by a former process of ours.
    pub(crate) fn adopt(&mut self, addresses: BTreeSet<(Arc<str>, IpAddr)>) {
        self.ours.extend(addresses);
    }

    /// These should be there from now on.
    pub(crate) fn want(&mut self, wanted: BTreeSet<(Arc<str>, IpAddr)>) {
        self.wanted = wanted;
        self.failed.clear();
    }

    /// Puts the addresses that are wanted on their interfaces, also those that were taken away or whose interface came later. What fails is
    /// logged, and shows when nothing can listen there.
    pub(crate) async fn hold(&mut self) {
        for one in &self.wanted {
            let (interface, ip) = (&*one.0, one.1);
            match add(interface, ip).await {
                Ok(()) => {
                    tracing::info!(%ip, interface, "added the address to the interface");
                    announce::spawn(Arc::clone(&one.0), ip);
                    self.failed.remove(one);
                    self.ours.insert(one.clone());
                }
                // A host's address that is exactly what is wanted was put there by a former process of ours.
                Err(error) if error.is_already_exists() => {
                    if !self.ours.contains(one) && is_hosts(interface, ip).await.unwrap_or(false) {
                        self.ours.insert(one.clone());
                    }
                }
                Err(error) => {
                    if self.failed.insert(one.clone()) {
                        tracing::error!(%ip, interface, %error, "cannot add the address to the interface; trying again");
                    }
                }
            }
        }
    }

    /// Takes away those of ours that are not wanted any more and that no listener uses.
    pub(crate) async fn release(&mut self, used: &BTreeSet<(Arc<str>, IpAddr)>) {
        let kept = |one: &(Arc<str>, IpAddr)| self.wanted.contains(one) || used.contains(one);
        for one in self.ours.iter().filter(|one| !kept(one)).cloned().collect::<Vec<_>>() {
            // Whatever comes of it: what can't be taken away now is gone with its interface.
            self.ours.remove(&one);
            if let Err(error) = remove(&one.0, one.1).await {
                tracing::error!(ip = %one.1, interface = &*one.0, %error, "cannot remove the address");
            }
        }
    }
}

/// The addresses that have an interface.
pub(crate) fn named(wanted: &Desired) -> BTreeSet<(Arc<str>, IpAddr)> {
    let named = wanted.listeners.iter().filter_map(|listener| {
        listener.interface.as_ref().map(|interface| (Arc::clone(interface), listener.address.ip()))
    });
    named.collect()
}

async fn add(interface: &str, ip: IpAddr) -> nlink::Result<()> {
    let connection = Connection::<Route>::new()?;
    match ip {
        IpAddr::V4(v4) => connection.add_address(Ipv4Address::new(interface, v4, 32)).await,
        // No other machine has it: whoever configured this says so. It could not be listened on while that is found out.
        IpAddr::V6(v6) => connection.add_address(Ipv6Address::new(interface, v6, 128).nodad()).await,
    }
}

/// Whether the address stands there alone, and not as a part of the interface's network.
async fn is_hosts(interface: &str, ip: IpAddr) -> nlink::Result<bool> {
    let all = Connection::<Route>::new()?.get_addresses_by_name(interface).await?;
    Ok(all.iter().any(|one| one.address() == Some(&ip) && one.prefix_len() == length(ip)))
}

fn length(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

async fn remove(interface: &str, ip: IpAddr) -> nlink::Result<bool> {
    Connection::<Route>::new()?.del_address_if_exists(interface, ip, length(ip)).await
}
