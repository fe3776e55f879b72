//! Names of the admission policies that the hub installs in its API, and of their bindings. Operators see them there.

/// Only the hub writes bindings (`ValidatingAdmissionPolicy`).
pub const BINDINGS: &str = "bindings.atoll.dev";
/// Policies say who wrote them: one writes the stamp (`MutatingAdmissionPolicy`), another of the same name checks it.
pub const AUTHORS: &str = "authors.atoll.dev";
