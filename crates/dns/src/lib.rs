//! Answers DNS questions about a clusterset: a snapshot and a packet in, a packet out.
//!
//! ```text
//!   facts (ServiceImports, EndpointSlices) ─▶ catalog ─▶ snapshot ──┐
//!   packet ─▶ query (checked) ──────────────────────────────────────┴▶ answer (why) ─▶ reply ─▶ packet
//! ```
//!
//! Pure: no socket, no clock, no randomness. A [`Catalog`] takes what a cluster says of its imports and publishes a [`Snapshot`];
//! a changed slice replaces the records of its one service and shares all others. [`respond`] answers one packet from a snapshot;
//! [`Snapshot::answer`] is the same without bytes, and says why. The names are those of KEP-1645's DNS specification, schema 1.0.0.
//!
//! ```
//! use atoll_dns::{Catalog, Event, Import, Settings, Transport, respond};
//!
//! let mut catalog = Catalog::new(Settings::default(), 1);
//! let web = Import { ips: vec!["10.111.0.7".parse().unwrap()], ..Import::default() };
//! catalog.apply(Event::Import { namespace: "shop".into(), name: "web".into(), import: web });
//! catalog.apply(Event::Listed(atoll_dns::Kind::Imports));
//! catalog.apply(Event::Listed(atoll_dns::Kind::Slices));
//! let snapshot = catalog.publish().unwrap();
//!
//! let query = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x03Web\x04shop\x03svc\x0aclusterset\x05local\0\0\x01\0\x01";
//! let mut reply = Vec::new();
//! let summary = respond(&snapshot, query, Transport::Udp, 0, &mut reply).unwrap();
//! assert_eq!(summary.rcode, atoll_dns::rcode::NO_ERROR);
//! assert!(reply.ends_with(&[10, 111, 0, 7]));
//! ```

mod answer;
mod catalog;
mod facts;
mod lookup;
mod name;
mod query;
mod rate;
mod reply;
mod service;
mod snapshot;
pub mod wire;

pub use answer::{Absent, Answer, NoData, NxDomain, Records, Refusal};
pub use catalog::{Catalog, Event, Kind};
pub use facts::{Endpoint, Import, Port, Protocol, Slice};
pub use lookup::{Lookup, lookup};
pub use name::{BadName, Name};
pub use query::{Edns, Query, Rejected, Silent, Unread};
pub use rate::{Limiter, Ranges, Rate, Verdict};
pub use reply::{Summary, Transport, respond, respond_from, truncate};
pub use service::{Host, Ranked, Service, Target};
pub use snapshot::{Settings, Snapshot};
pub use wire::rcode;
