//! How the names of objects begin that we make in members. A later rename would change every ClusterIP.

/// Derived Services. KEP-1645 says no name; Karmada's users know this one.
pub const DERIVED: &str = "derived-";
/// Imported EndpointSlices. Karmada's are called so as well.
pub const IMPORTED: &str = "imported-";
