//! Kinds that stand in for those of the hub's API with the floor: the same schemas under a group of the benchmark's own, so that the
//! API server has the same work with them, and the product none.

use std::time::{Duration, Instant};

use atoll_api::crds;
use atoll_api::names::kind::{networking, work};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, GroupVersionKind, ObjectMeta, PostParams};

use crate::error::{Doing, Error};

/// The benchmark's own group.
const GROUP: &str = "bench.atoll.dev";
/// How long an API server may take to serve them.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kind of the hub's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// Of a `ResourceBinding`.
    Binding,
    /// Of a `MultiClusterService`.
    Mcs,
}

impl StandIn {
    const ALL: [Self; 2] = [Self::Binding, Self::Mcs];

    fn kind(self) -> &'static str {
        match self {
            Self::Binding => work::RESOURCE_BINDING,
            Self::Mcs => networking::MULTI_CLUSTER_SERVICE,
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Binding => work::V1ALPHA2,
            Self::Mcs => networking::V1ALPHA1,
        }
    }

    /// Its resource's name, which is the original's.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Binding => work::RESOURCE_BINDINGS,
            Self::Mcs => networking::MULTI_CLUSTER_SERVICES,
        }
    }

    /// Which an object says that it is: `apiVersion` and `kind`.
    pub(crate) fn type_meta(self) -> (String, &'static str) {
        (format!("{GROUP}/{}", self.version()), self.kind())
    }

    /// Where its objects of a namespace are.
    pub(crate) fn path(self, namespace: &str) -> String {
        format!("/apis/{GROUP}/{}/namespaces/{namespace}/{}", self.version(), self.plural())
    }

    /// The kind, for a client that does not know its shape.
    pub(crate) fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(GROUP, self.version(), self.kind());
        ApiResource::from_gvk_with_plural(&kind, self.plural())
    }

    fn crd(self) -> Option<CustomResourceDefinition> {
        let original = crds::of_hub().into_iter().find(|crd| crd.spec.names.kind == self.kind())?;
        Some(standing_in(original))
    }
}

/// The same schema under the benchmark's group. Short names and categories are the original's alone.
fn standing_in(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let name = format!("{}.{GROUP}", crd.spec.names.plural);
    crd.metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
    crd.spec.group = GROUP.to_owned();
    (crd.spec.names.short_names, crd.spec.names.categories) = (None, None);
    crd.status = None;
    crd
}

/// Has the hub's API serve them.
pub(crate) async fn install(hub: &Client) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    for crd in StandIn::ALL.into_iter().filter_map(StandIn::crd) {
        match api.create(&PostParams::default(), &crd).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            made => drop(made.doing(|| "install the floor's kinds in the hub".to_owned())?),
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while !served(hub).await {
        if Instant::now() > deadline {
            let what = "the floor's kinds are served in the hub".to_owned();
            return Err(Error::Deadline {
                what,
                seconds: PATIENCE.as_secs(),
                missing: format!("kinds of {GROUP}"),
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn served(hub: &Client) -> bool {
    for stand_in in StandIn::ALL {
        let known = hub.list_api_group_resources(&stand_in.type_meta().0).await;
        let status = format!("{}/status", stand_in.plural());
        if !known.is_ok_and(|list| list.resources.iter().any(|kind| kind.name == status)) {
            return false;
        }
    }
    true
}

/// Deletes them.
pub(crate) async fn remove(hub: &Client) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    for stand_in in StandIn::ALL {
        let name = format!("{}.{GROUP}", stand_in.plural());
        match api.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            gone => drop(gone.doing(|| "take the floor's kinds out of the hub".to_owned())?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_has_the_originals_schema_and_none_of_its_names() {
        for stand_in in StandIn::ALL {
            let original = crds::of_hub().into_iter().find(|crd| crd.spec.names.kind == stand_in.kind());
            let (original, crd) = (original.unwrap(), stand_in.crd().unwrap());
            assert_eq!(crd.spec.versions, original.spec.versions);
            assert_ne!(crd.spec.group, original.spec.group);
            assert_eq!(crd.metadata.name.as_deref(), Some(&*format!("{}.{GROUP}", stand_in.plural())));
            assert!(crd.spec.versions.iter().any(|version| version.name == stand_in.version()));
            assert_eq!(
                (crd.spec.names.short_names, crd.spec.names.plural.as_str()),
                (None, stand_in.plural())
            );
        }
    }
}
