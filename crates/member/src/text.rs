//! The prose of a member that the engine does not know.

/// The message of an import's `Ready` while its derived Service is not there.
pub(crate) const DERIVED_SERVICE_AWAITED: &str =
    "The derived Service is being made; the service can be used when it has its address.";

/// The message of an import's `Ready` while the API server does not take its derived Service.
pub(crate) fn derived_service_refused(name: &str, why: &str) -> String {
    format!("The API server rejected the derived Service \"{name}\"; the hub tries again every 30 s: {why}")
}

/// The message of an export's `Valid` if no Service can have its name.
pub(crate) fn misnamed(name: &str) -> String {
    format!(
        "{name:?} is not a valid name of a Service: use at most 63 lower case letters, digits and dashes. Delete this export, and create one with the name of a Service."
    )
}
