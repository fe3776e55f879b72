//! Decides what to answer, and why; knows no bytes of a reply.

use crate::query::Query;
use crate::service::{Host, Ranked, Service, Target};
use crate::snapshot::Snapshot;
use crate::wire::{IN, rcode, rtype};

/// What a question is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'s> {
    /// Records.
    Records(Records<'s>),
    /// No records, and how long that may be believed.
    Absent(Absent),
    /// We don't answer that.
    Refused(Refusal),
    /// Not everything has been listed yet: we don't know.
    NotSynced,
    /// EDNS of another version than 0.
    BadVersion,
}

/// Which records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records<'s> {
    /// IPv4 addresses of a service.
    V4(&'s Service),
    /// IPv6 addresses of a service.
    V6(&'s Service),
    /// IPv4 addresses of one endpoint.
    HostV4(&'s Host),
    /// IPv6 addresses of one endpoint.
    HostV6(&'s Host),
    /// Hosts and ports.
    Srv(&'s Service, &'s Ranked<Target>),
    /// The version of the schema.
    SchemaVersion,
    /// The zone's own record.
    Soa,
    /// The zone's server.
    Ns,
    /// One small record for whoever wants them all (RFC 8482).
    Minimal,
}

/// Why there are no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The name is there.
    NoData(NoData),
    /// The name is not there.
    NxDomain(NxDomain),
}

/// Why a name that is there has no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoData {
    /// None of this type.
    OtherType,
    /// There are only names below it. `<cluster>.<service>…` is one: never served, but not missing either.
    OnlyNamesBelow,
}

/// Why a name is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NxDomain {
    /// No such service, or a headless one with nothing ready.
    NoService,
    /// The service is there, and has no such host or port.
    NotOfService,
    /// No service in the namespace.
    NoNamespace,
    /// Not a name of the schema.
    NotInSchema,
}

/// Why we don't answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The name is not in our zone.
    NotOurs,
    /// The whole zone was asked for.
    Transfer,
    /// Another class than that of the Internet.
    OtherClass,
}

impl Answer<'_> {
    /// The code that goes with it.
    pub fn rcode(&self) -> u16 {
        match self {
            Self::Records(_) | Self::Absent(Absent::NoData(_)) => rcode::NO_ERROR,
            Self::Absent(Absent::NxDomain(_)) => rcode::NX_DOMAIN,
            Self::Refused(_) => rcode::REFUSED,
            Self::NotSynced => rcode::SERVER_FAILURE,
            Self::BadVersion => rcode::BAD_VERSION,
        }
    }
}

/// What is at a name.
enum At<'s> {
    Apex,
    SchemaVersion,
    Service(&'s Service),
    Host(&'s Host),
    Port(&'s Service, &'s Ranked<Target>),
    NamesBelow,
    Nothing(NxDomain),
}

impl Snapshot {
    /// Decides what to answer.
    pub fn answer(&self, query: &Query<'_>) -> Answer<'_> {
        if query.edns.is_some_and(|edns| edns.version != 0) {
            return Answer::BadVersion;
        }
        if query.class != IN {
            return Answer::Refused(Refusal::OtherClass);
        }
        if matches!(query.rtype, rtype::AXFR | rtype::IXFR) {
            return Answer::Refused(Refusal::Transfer);
        }
        if !self.is_ours(query) {
            return Answer::Refused(Refusal::NotOurs);
        }
        if !self.complete {
            return Answer::NotSynced;
        }
        let at = self.find(query);
        let records = match (&at, query.rtype) {
            (At::Nothing(why), _) => return Answer::Absent(Absent::NxDomain(*why)),
            (At::NamesBelow, _) => return Answer::Absent(Absent::NoData(NoData::OnlyNamesBelow)),
            (_, rtype::ANY) => Some(Records::Minimal),
            (At::Apex, rtype::SOA) => Some(Records::Soa),
            (At::Apex, rtype::NS) => Some(Records::Ns),
            (At::SchemaVersion, rtype::TXT) => Some(Records::SchemaVersion),
            (At::Service(service), rtype::A) if !service.v4.is_empty() => Some(Records::V4(service)),
            (At::Service(service), rtype::AAAA) if !service.v6.is_empty() => Some(Records::V6(service)),
            (At::Service(service), rtype::SRV) if !service.all_ports.is_empty() => {
                Some(Records::Srv(service, &service.all_ports))
            }
            (At::Port(service, targets), rtype::SRV) => Some(Records::Srv(service, targets)),
            (At::Host(host), rtype::A) if !host.v4.is_empty() => Some(Records::HostV4(host)),
            (At::Host(host), rtype::AAAA) if !host.v6.is_empty() => Some(Records::HostV6(host)),
            (At::Apex | At::SchemaVersion | At::Service(_) | At::Port(..) | At::Host(_), _) => None,
        };
        records.map_or(Answer::Absent(Absent::NoData(NoData::OtherType)), Answer::Records)
    }

    /// Is the name in our zone?
    pub(crate) fn is_ours(&self, query: &Query<'_>) -> bool {
        let name = &query.name;
        name.labels() >= self.zone_labels
            && name.part(name.labels() - self.zone_labels, name.labels()) == self.settings.zone.wire()
    }

    fn find(&self, query: &Query<'_>) -> At<'_> {
        const SVC: &[u8] = b"\x03svc";
        const DNS_VERSION: &[u8] = b"\x0bdns-version";
        const SERVER: &[u8] = b"\x02ns\x03dns";
        let name = &query.name;
        // `<below>.<service>.<namespace>.svc.<zone>`
        let own = name.labels() - self.zone_labels;
        if own == 0 {
            return At::Apex;
        }
        if name.part(own - 1, own) != SVC {
            return match name.part(0, own) {
                DNS_VERSION => At::SchemaVersion,
                // The zone's NS record names it; its address is not ours to know.
                SERVER => At::NamesBelow,
                part if SERVER.ends_with(part) => At::NamesBelow,
                _ => At::Nothing(NxDomain::NotInSchema),
            };
        }
        match own {
            1 => At::NamesBelow,
            2 if self.has_namespace(name.part(0, 1)) => At::NamesBelow,
            2 => At::Nothing(NxDomain::NoNamespace),
            _ => match self.service(name.part(own - 3, own - 1)) {
                None => At::Nothing(NxDomain::NoService),
                Some(service) => at_service(service, name.part(0, own - 3)),
            },
        }
    }
}

fn at_service<'s>(service: &'s Service, below: &[u8]) -> At<'s> {
    if below.is_empty() {
        At::Service(service)
    } else if let Some(host) = service.host(below) {
        At::Host(host)
    } else if let Some(targets) = service.port(below) {
        At::Port(service, targets)
    } else if service.is_between(below) {
        At::NamesBelow
    } else {
        At::Nothing(NxDomain::NotOfService)
    }
}
