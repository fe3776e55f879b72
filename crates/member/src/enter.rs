//! Joining: a cluster gets the CRDs and its two properties.

use std::time::Duration;

use atoll_api::crds;
use atoll_api::names::label;
use atoll_api::revision::{Kept, Verdict};
use atoll_api::types::ClusterProperty;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, PostParams};

use crate::core::object::PropertyName;
use crate::shell::failure::is_absent;
use crate::shell::requests::property;
use crate::{Clients, Identity};

/// How long the API server may take to serve a new kind.
const ESTABLISHED: Duration = Duration::from_secs(20);
const PACE: Duration = Duration::from_millis(100);

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnterSummary {
    /// CRDs that were not there.
    pub installed: Vec<String>,
    /// CRDs that were older.
    pub replaced: Vec<String>,
    /// CRDs that were left alone, and why.
    pub kept: Vec<(String, Kept)>,
    /// Properties that were made.
    pub properties: Vec<&'static str>,
}

/// Why a cluster can't be entered. Whatever was done before is harmless, and is found done at the next try.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The cluster says that it is another cluster.
    #[error("ClusterProperty {name} is {theirs:?}, not {ours:?}")]
    OtherProperty {
        /// The property.
        name: &'static str,
        /// Its value.
        theirs: String,
        /// What it would have to be.
        ours: String,
    },
    /// The cluster is another hub's.
    #[error("ClusterProperty {name} was created by the hub {hub}")]
    OtherHub {
        /// The property.
        name: &'static str,
        /// The uid of that hub.
        hub: String,
    },
    /// A CRD was installed, but its kind is not served.
    #[error("the API server does not serve {crd} after 20 s")]
    NotServed {
        /// The CRD.
        crd: String,
    },
    /// The API does not do what it was asked for.
    #[error("cannot {doing}")]
    Api {
        /// What it was asked for.
        doing: String,
        /// What it said.
        #[source]
        error: Box<kube::Error>,
    },
}

fn doing(what: impl Into<String>) -> impl FnOnce(kube::Error) -> EnterError {
    move |error| EnterError::Api { doing: what.into(), error: Box::new(error) }
}

/// Installs the CRDs, unless there are newer ones, and the cluster's properties. Refuses, before anything is written, when
/// an existing property has another value.
pub async fn enter(identity: &Identity, clients: &Clients) -> Result<EnterSummary, EnterError> {
    may_enter(identity, clients).await?;
    let api: Api<CustomResourceDefinition> = Api::all(clients.writes.clone());
    let properties: Api<ClusterProperty> = Api::all(clients.writes.clone());
    let mut summary = EnterSummary::default();
    for ours in crds::of_members() {
        install(&api, ours, &mut summary).await?;
    }
    for (name, value) in wanted(identity) {
        if check(&properties, name, value, &identity.hub).await? {
            continue;
        }
        let object = serde_json::from_value(property(name, value, &identity.hub, None));
        let object: ClusterProperty =
            object.map_err(|error| doing(format!("make {name}"))(kube::Error::SerdeError(error)))?;
        match properties.create(&PostParams::default(), &object).await {
            Ok(_) => summary.properties.push(name),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                check(&properties, name, value, &identity.hub).await?;
            }
            Err(error) => return Err(doing(format!("make ClusterProperty {name}"))(error)),
        }
    }
    Ok(summary)
}

/// Whether the cluster belongs to no other hub: no property of another hub, none with another value. Writes nothing.
pub async fn may_enter(identity: &Identity, clients: &Clients) -> Result<(), EnterError> {
    let properties: Api<ClusterProperty> = Api::all(clients.writes.clone());
    for (name, ours) in wanted(identity) {
        check(&properties, name, ours, &identity.hub).await?;
    }
    Ok(())
}

fn wanted(identity: &Identity) -> [(&'static str, &str); 2] {
    [
        (PropertyName::ClusterId.as_str(), identity.cluster.as_str()),
        (PropertyName::Clusterset.as_str(), &*identity.clusterset),
    ]
}

/// Whether the property is there and says what it should.
async fn check(
    api: &Api<ClusterProperty>,
    name: &'static str,
    ours: &str,
    hub: &str,
) -> Result<bool, EnterError> {
    let found = match api.get(name).await {
        Ok(found) => found,
        Err(error) if is_absent(&error) => return Ok(false),
        Err(error) => return Err(doing(format!("read ClusterProperty {name}"))(error)),
    };
    if let Some(other) = found.labels().get(label::HUB).filter(|other| *other != hub) {
        return Err(EnterError::OtherHub { name, hub: other.clone() });
    }
    if found.spec.value != ours {
        return Err(EnterError::OtherProperty { name, theirs: found.spec.value, ours: ours.to_owned() });
    }
    Ok(true)
}

async fn install(
    api: &Api<CustomResourceDefinition>,
    mut ours: CustomResourceDefinition,
    summary: &mut EnterSummary,
) -> Result<(), EnterError> {
    let name = ours.name_any();
    let found = api.get_opt(&name).await.map_err(doing(format!("read the CRD {name}")))?;
    match found {
        None => {
            api.create(&PostParams::default(), &ours).await.map_err(doing(format!("install {name}")))?;
            summary.installed.push(name.clone());
        }
        Some(found) => match crds::judge(&ours, &found) {
            Verdict::Keep(why) => summary.kept.push((name.clone(), why)),
            Verdict::Replace(_) => {
                ours.metadata.resource_version = found.metadata.resource_version;
                let doing = doing(format!("replace {name}"));
                api.replace(&name, &PostParams::default(), &ours).await.map_err(doing)?;
                summary.replaced.push(name.clone());
            }
        },
    }
    let deadline = tokio::time::Instant::now() + ESTABLISHED;
    loop {
        let crd = api.get(&name).await.map_err(doing(format!("read the CRD {name}")))?;
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|c| c.type_ == "Established" && c.status == "True") {
            return Ok(());
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(EnterError::NotServed { crd: name });
        }
        tokio::time::sleep(PACE).await;
    }
}
