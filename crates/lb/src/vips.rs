//! Puts listeners' addresses on an interface, tells the neighbours, and takes away what it put there. What was there before is not
//! ours.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use nlink::netlink::addr::{Ipv4Address, Ipv6Address};
use nlink::netlink::{Connection, Route};

use crate::announce;
use crate::wanted::Wanted;

/// The addresses that we have put on interfaces.
#[derive(Debug, Default)]
pub(crate) struct Vips {
    ours: BTreeSet<(Arc<str>, IpAddr)>,
    /// Those that we have put there ourselves, and not a former process.
    held: BTreeSet<(Arc<str>, IpAddr)>,
}

impl Vips {
    /// These were put there by a former process of ours.
    pub(crate) fn adopt(&mut self, addresses: BTreeSet<(Arc<str>, IpAddr)>) {
        self.ours.extend(addresses);
    }

    /// Puts the addresses that are wanted on their interfaces. What fails is logged, and shows when nothing can listen there.
    pub(crate) async fn hold(&mut self, wanted: &Wanted) {
        for (interface, ip) in named(wanted) {
            if self.held.contains(&(Arc::clone(&interface), ip)) {
                continue;
            }
            match add(&interface, ip).await {
                Ok(()) => {
                    tracing::info!(%ip, interface = &*interface, "put the address on the interface");
                    announce::spawn(Arc::clone(&interface), ip);
                    self.held.insert((Arc::clone(&interface), ip));
                    self.ours.insert((interface, ip));
                }
                Err(error) if error.is_already_exists() => {}
                Err(error) => {
                    tracing::error!(%ip, interface = &*interface, %error, "cannot put the address on the interface");
                }
            }
        }
    }

    /// Takes away those of ours that are not wanted any more.
    pub(crate) async fn release(&mut self, wanted: &BTreeSet<(Arc<str>, IpAddr)>) {
        for (interface, ip) in self.ours.difference(wanted).cloned().collect::<Vec<_>>() {
            match remove(&interface, ip).await {
                Ok(_) => {
                    self.held.remove(&(Arc::clone(&interface), ip));
                    self.ours.remove(&(interface, ip));
                }
                Err(error) => {
                    tracing::error!(%ip, interface = &*interface, %error, "cannot take the address away");
                }
            }
        }
    }
}

/// The addresses that have an interface.
pub(crate) fn named(wanted: &Wanted) -> BTreeSet<(Arc<str>, IpAddr)> {
    let named = wanted.listeners.iter().filter_map(|listener| {
        listener.interface.as_ref().map(|interface| (Arc::clone(interface), listener.address.ip()))
    });
    named.collect()
}

async fn add(interface: &str, ip: IpAddr) -> nlink::Result<()> {
    let connection = Connection::<Route>::new()?;
    match ip {
        IpAddr::V4(v4) => connection.add_address(Ipv4Address::new(interface, v4, 32)).await,
        // Nobody else has it: whoever configured this says so. It could not be listened on while that is found out.
        IpAddr::V6(v6) => connection.add_address(Ipv6Address::new(interface, v6, 128).nodad()).await,
    }
}

async fn remove(interface: &str, ip: IpAddr) -> nlink::Result<bool> {
    let length = if ip.is_ipv4() { 32 } else { 128 };
    Connection::<Route>::new()?.del_address_if_exists(interface, ip, length).await
}
