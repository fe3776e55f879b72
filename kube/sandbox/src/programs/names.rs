//! `nslookup` and `dig`: what the cluster's DNS says of a name.

use super::Pipe;
use crate::network::{Dialer, ServiceRecord};
use std::net::{IpAddr, Ipv4Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    A,
    Aaaa,
    Srv,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "A" => Some(Self::A),
            "AAAA" => Some(Self::Aaaa),
            "SRV" => Some(Self::Srv),
            "ANY" => Some(Self::Any),
            _ => None,
        }
    }

    fn is_of(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::A => address.is_ipv4(),
            Self::Aaaa => address.is_ipv6(),
            Self::Srv => false,
        }
    }
}

/// What is known of a name.
struct Found {
    name: String,
    addresses: Vec<IpAddr>,
    services: Vec<ServiceRecord>,
    /// There is such a name, whatever it has.
    exists: bool,
}

async fn look_up(dialer: &Dialer, name: &str, kind: Kind) -> Found {
    let services = if kind == Kind::Srv { dialer.services(name).await } else { Vec::new() };
    let known = dialer.look_up(name).await.ok();
    let exists = known.is_some() || !services.is_empty();
    let (name, mut addresses) = known.unwrap_or_else(|| (name.trim_end_matches('.').to_owned(), Vec::new()));
    addresses.retain(|address| kind.is_of(address));
    Found { name, addresses, services, exists }
}

/// `nslookup [-type=KIND] NAME`.
pub(super) async fn nslookup(dialer: &Dialer, dns: Ipv4Addr, arguments: &[String], out: &Pipe) -> i32 {
    let flag = |argument: &String| {
        let (name, value) = argument.strip_prefix('-')?.split_once('=')?;
        ["type", "querytype", "q"].contains(&name).then(|| Kind::parse(value)).flatten()
    };
    let kind = arguments.iter().find_map(flag).unwrap_or(Kind::Any);
    let Some(name) = arguments.iter().find(|argument| !argument.starts_with('-')) else {
        out.line("usage: nslookup [-type=A|AAAA|SRV] NAME").await;
        return 1;
    };
    let found = look_up(dialer, name, kind).await;
    out.line(&format!("Server:\t\t{dns}\nAddress:\t{dns}#53\n")).await;
    if !found.exists {
        out.line(&format!("** server can't find {}: NXDOMAIN\n", found.name)).await;
        return 1;
    }
    for record in &found.services {
        let ServiceRecord { priority, weight, port, target } = record;
        out.line(&format!("{}\tservice = {priority} {weight} {port} {target}.", found.name)).await;
    }
    for address in &found.addresses {
        out.line(&format!("Name:\t{}\nAddress: {address}", found.name)).await;
    }
    if found.services.is_empty() && found.addresses.is_empty() {
        out.line(&format!("*** Can't find {}: No answer", found.name)).await;
    }
    out.line("").await;
    0
}

/// `dig [+short] NAME [KIND]`.
pub(super) async fn dig(dialer: &Dialer, dns: Ipv4Addr, arguments: &[String], out: &Pipe) -> i32 {
    let mut kind = Kind::A;
    let mut short = false;
    let mut search = false;
    let mut name = None;
    for argument in arguments {
        match argument.as_str() {
            "+short" => short = true,
            "+search" => search = true,
            other if other.starts_with(['+', '@', '-']) => {}
            other => match Kind::parse(other) {
                Some(asked) => kind = asked,
                None => name = Some(other),
            },
        }
    }
    let name = name.unwrap_or(".");
    // Unlike others, dig takes a name for complete.
    let asked = if search { name.to_owned() } else { format!("{}.", name.trim_end_matches('.')) };
    let found = look_up(dialer, &asked, kind).await;
    let services = found.services.iter().map(|record| {
        let ServiceRecord { priority, weight, port, target } = record;
        ("SRV", format!("{priority} {weight} {port} {target}."))
    });
    let addresses = found
        .addresses
        .iter()
        .map(|address| (if address.is_ipv4() { "A" } else { "AAAA" }, address.to_string()));
    let answers: Vec<_> = services.chain(addresses).collect();
    if short {
        for (_, text) in answers {
            out.line(&text).await;
        }
        return 0;
    }
    let status = if found.exists { "NOERROR" } else { "NXDOMAIN" };
    out.line(&format!(";; ->>HEADER<<- opcode: QUERY, status: {status}\n;; ANSWER: {}", answers.len())).await;
    for (kind, text) in answers {
        out.line(&format!("{}.\tIN\t{kind}\t{text}", found.name)).await;
    }
    out.line(&format!(";; SERVER: {dns}#53")).await;
    0
}
