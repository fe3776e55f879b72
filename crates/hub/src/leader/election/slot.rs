//! The Lease as an API object, and as the few facts that the rules need.

use std::time::Duration;

use atoll_api::names::annotation::INCARNATION;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::membership::clusterset;
use crate::membership::connect::{code, why};

/// The name of the Lease.
pub(crate) const LEASE: &str = crate::options::LEASE;

/// What the rules know of a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) holder: Option<String>,
    pub(crate) incarnation: Option<String>,
    pub(crate) duration: Duration,
    pub(crate) transitions: i32,
    /// The resourceVersion; empty if there is no Lease yet.
    pub(crate) version: String,
}

/// Why a request for the Lease failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlotError {
    /// Another client wrote it since we read it.
    #[error("another replica changed the lease")]
    Conflict,
    /// Too late.
    #[error("no answer in time")]
    NoAnswer,
    /// Anything else.
    #[error("{0}")]
    Api(String),
}

/// Where the Lease is kept.
pub(crate) trait Slot {
    /// The Lease, if there is one.
    fn read(&self) -> impl Future<Output = Result<Option<Record>, SlotError>> + Send;
    /// Writes it over the version that the record names; gives what stands there now.
    fn write(&self, record: &Record) -> impl Future<Output = Result<Record, SlotError>> + Send;
}

/// A Lease in a Kubernetes API.
pub(crate) struct InApi {
    client: Client,
    namespace: String,
    api: Api<Lease>,
}

impl InApi {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let api = Api::namespaced(client.clone(), namespace);
        Self { client, namespace: namespace.to_owned(), api }
    }
}

impl Slot for InApi {
    async fn read(&self) -> Result<Option<Record>, SlotError> {
        self.api.get_opt(LEASE).await.map(|lease| lease.as_ref().map(record)).map_err(failed)
    }

    async fn write(&self, wanted: &Record) -> Result<Record, SlotError> {
        let lease = lease(wanted);
        let params = PostParams::default();
        let new = wanted.version.is_empty();
        let written = if new {
            self.api.create(&params, &lease).await
        } else {
            self.api.replace(LEASE, &params, &lease).await
        };
        let written = match written {
            // Nothing can be made in a namespace that is gone.
            Err(error) if new && code(&error) == Some(404) => {
                tracing::warn!(
                    namespace = self.namespace,
                    "the hub's namespace is missing; creating it again"
                );
                clusterset::ensure_namespace(&self.client, &self.namespace).await.map_err(failed)?;
                self.api.create(&params, &lease).await.map_err(|error| match code(&error) {
                    Some(404) => failed(error),
                    _ => sorted(error),
                })
            }
            other => other.map_err(sorted),
        };
        written.map(|lease| record(&lease))
    }
}

fn sorted(error: kube::Error) -> SlotError {
    match code(&error) {
        // Deleted under us: the next write makes it anew.
        Some(404 | 409) => SlotError::Conflict,
        _ => failed(error),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: kube::Error) -> SlotError {
    SlotError::Api(why(&error))
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    let annotations = lease.metadata.annotations.as_ref();
    Record {
        holder: spec.holder_identity,
        incarnation: annotations.and_then(|annotations| annotations.get(INCARNATION).cloned()),
        duration: Duration::from_secs(seconds),
        transitions: spec.lease_transitions.unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

fn lease(record: &Record) -> Lease {
    let now = MicroTime(Timestamp::now()); // for people: no replica's clock is compared with it
    Lease {
        metadata: ObjectMeta {
            name: Some(LEASE.to_owned()),
            resource_version: Some(record.version.clone()).filter(|version| !version.is_empty()),
            annotations: record.incarnation.clone().map(|who| [(INCARNATION.to_owned(), who)].into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: record.holder.clone(),
            lease_duration_seconds: Some(i32::try_from(record.duration.as_secs()).unwrap_or(i32::MAX)),
            lease_transitions: Some(record.transitions),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    }
}
