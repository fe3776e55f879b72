//! How much one member may say of one service, and how many services it may export. Checked before anything is remembered: what is too
//! much is refused by itself, and takes nothing from others.

use serde::{Deserialize, Serialize};

use crate::facts::{ExportFact, Pairs, ServiceFact};
use crate::world::Holding;

/// So many labels and annotations, together.
pub const KEYS: u32 = 64;
/// So many bytes of them. All that is remembered of a service has to fit into 1 MiB, with what up to a hundred other clusters say of it.
pub const BYTES: u32 = 8 * 1024;
/// So many ports: as many as an EndpointSlice has.
pub const PORTS: u32 = 100;
/// So many slices of one service in one cluster, of both families together.
pub const SLICES: u32 = 500;
/// So many endpoints in them.
pub const ENDPOINTS: u32 = 20_000;
/// So many endpoints in one slice, and addresses of one endpoint: Kubernetes' own limits, which a hostile API need not keep.
pub const ENDPOINTS_OF_SLICE: usize = 1000;
/// See [`ENDPOINTS_OF_SLICE`].
pub const ADDRESSES_OF_ENDPOINT: usize = 100;
/// So many zones in the hints of one endpoint: Kubernetes' own limit.
pub const ZONES_OF_ENDPOINT: usize = 8;
/// So many exports of one cluster.
pub const EXPORTS: u32 = 10_000;
/// The longest session affinity that an API server takes, in seconds.
pub const LONGEST_AFFINITY: u32 = 86_400;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Limit {
    /// Exported labels and annotations.
    Keys,
    /// Bytes of exported labels and annotations, as JSON.
    Bytes,
    /// Ports of the Service.
    Ports,
    /// Slices of the Service.
    Slices,
    /// Endpoints of the Service.
    Endpoints,
    /// Exports of the cluster.
    Exports,
    /// Services of the cluster in the namespaces of a `SharingPolicy`.
    PolicyServices,
    /// Endpoints of the Service, by a `SharingPolicy`.
    PolicyEndpoints,
}

impl Limit {
    /// Whether it is about what the cluster exports beside this: there may be room later.
    pub fn is_quota(self) -> bool {
        match self {
            Self::Exports | Self::PolicyServices => true,
            Self::Keys
            | Self::Bytes
            | Self::Ports
            | Self::Slices
            | Self::Endpoints
            | Self::PolicyEndpoints => false,
        }
    }
}

/// A limit that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Exceeded {
    /// Which.
    pub limit: Limit,
    /// So much is allowed.
    pub most: u32,
    /// At least so much was found. It does not follow every endpoint: a condition would be written with each.
    pub found: u32,
}

impl Exceeded {
    /// Compares; `step` is how coarsely it is said how much there is.
    pub fn check(limit: Limit, most: u32, found: usize, step: u32) -> Result<(), Self> {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if found <= most {
            return Ok(());
        }
        let coarse = found - found % step.max(1);
        Err(Self { limit, most, found: coarse.max(most.saturating_add(1)) })
    }
}

/// Is this more than a ServiceExport and its Service may say?
pub fn of_export(export: &ExportFact, service: &ServiceFact) -> Result<(), Exceeded> {
    Exceeded::check(Limit::Keys, KEYS, export.labels.len() + export.annotations.len(), 1)?;
    Exceeded::check(Limit::Bytes, BYTES, bytes(&export.labels) + bytes(&export.annotations), 1)?;
    Exceeded::check(Limit::Ports, PORTS, service.ports.len(), 1)
}

/// Has the cluster more endpoints of the service than it may?
pub fn of_slices(holding: &Holding) -> Result<(), Exceeded> {
    Exceeded::check(Limit::Slices, SLICES, holding.slices.len(), SLICES)?;
    Exceeded::check(Limit::Endpoints, ENDPOINTS, endpoints(holding), ENDPOINTS)
}

/// The endpoints that a cluster has of a service.
pub fn endpoints(holding: &Holding) -> usize {
    holding.slices.values().map(|slice| slice.endpoints.len()).sum()
}

/// What pairs take as JSON, in which they are remembered.
pub fn bytes(pairs: &Pairs) -> usize {
    const AROUND: usize = "\"\":\"\",".len();
    pairs.iter().map(|(key, value)| AROUND + escaped(key) + escaped(value)).sum()
}

fn escaped(text: &str) -> usize {
    let size = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{export, ports, service};

    #[test]
    fn each_limit_is_named_with_its_number_and_what_was_found() {
        let web = service(&[("http", 80)]);
        let with = |annotations: Pairs| ExportFact { annotations, ..export(1) };
        let many = (0..65).map(|n| (format!("k{n}").into(), "v".into())).collect();
        let long: Pairs = [("k".into(), "x".repeat(9000).into())].into();
        let escaped: Pairs = [("k".into(), "\u{1}".repeat(2000).into())].into();
        let crowded = ServiceFact {
            ports: ports(&(1..=101).map(|n| format!("p{n}:{n} ")).collect::<String>()),
            ..web.clone()
        };
        for (export, service, limit, most, found) in [
            (with(many), &web, Limit::Keys, 64, 65),
            (with(long), &web, Limit::Bytes, 8192, 9007),
            (with(escaped), &web, Limit::Bytes, 8192, 12_007),
            (export(1), &crowded, Limit::Ports, 100, 101),
        ] {
            assert_eq!(of_export(&export, service), Err(Exceeded { limit, most, found }));
        }
        let honest = (0..64).map(|n| (format!("example.com/k{n}").into(), "value".into())).collect();
        assert_eq!(of_export(&with(honest), &web), Ok(()));
        assert_eq!(bytes(&[("a".into(), "b\n".into())].into()), r#""a":"b\n","#.len());
    }

    #[test]
    fn what_is_said_of_a_crowd_does_not_follow_every_endpoint() {
        let check = |found| Exceeded::check(Limit::Endpoints, 10_000, found, 10_000).map_err(|e| e.found);
        assert_eq!(check(10_000), Ok(()));
        assert_eq!((check(10_001), check(19_999), check(20_001)), (Err(10_001), Err(10_001), Err(20_000)));
    }
}
