//! What the built-in provider asks the hub that runs it: whether it leads, and whether the pool leads anywhere beside the members.

use atoll_api::types::Cluster;
use atoll_lb::controller::Event;
use atoll_lb::provider::{ProviderError, async_trait};
use atoll_lb_kube::{Host, News, Pool};
use atoll_member::Permit;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc::WeakUnboundedSender;

use crate::membership::connect::why;
use crate::membership::join::known;
use ipnet::IpNet;

use crate::membership::networks::{Kind, Networks, Ranges, overlap};

/// The hub, while it leads.
pub(super) struct LeadingHub {
    client: Client,
    namespace: String,
    permit: Permit,
    /// The controller. It ends when no other task sends to it.
    controller: WeakUnboundedSender<Event>,
}

impl LeadingHub {
    pub(super) fn new(
        client: Client,
        namespace: &str,
        permit: Permit,
        controller: WeakUnboundedSender<Event>,
    ) -> Self {
        Self { client, namespace: namespace.to_owned(), permit, controller }
    }
}

#[async_trait]
impl Host for LeadingHub {
    fn leads(&self) -> bool {
        self.permit.holds()
    }

    async fn check(&self, pool: &Pool) -> Result<(), ProviderError> {
        let clusters = Api::<Cluster>::all(self.client.clone()).list(&ListParams::default()).await;
        let clusters = clusters
            .map_err(|error| ProviderError::passing(format!("the hub's API: {}", why(&error))))?
            .items;
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let secrets = secrets.list(&ListParams::default()).await;
        let secrets =
            secrets.map_err(|error| ProviderError::passing(format!("the hub's API: {}", why(&error))))?.items;
        let members: Vec<_> = clusters.iter().map(|cluster| known(cluster, &secrets)).collect();
        fits(pool, members.iter().map(|(name, one)| (name.as_str(), &one.networks)))
            .map_err(|overlaps| ProviderError::lasting(overlaps.to_string()))
    }

    fn news(&self, news: News) {
        let event = match news {
            News::Displaced { namespace, name } => Event::Displaced { namespace, name },
            News::Room => Event::Room,
        };
        if let Some(controller) = self.controller.upgrade() {
            // The controller listens no more: it is over.
            let _ = controller.send(event);
        }
    }
}

/// The pool can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pool {pool} overlaps the {kind} {theirs} of {cluster}: its traffic would not leave that cluster; start the hub with another --lb-pool"
)]
struct Overlaps {
    pool: IpNet,
    kind: Kind,
    theirs: IpNet,
    cluster: String,
}

/// Whether the pool can be used beside these clusters.
fn fits<'a>(pool: &Pool, clusters: impl Iterator<Item = (&'a str, &'a Networks)>) -> Result<(), Overlaps> {
    let pods = Ranges(pool.ranges().collect());
    let ours = Networks { pods, ..Networks::default() };
    for (name, networks) in clusters {
        if let Some(found) = overlap(&ours, networks) {
            let ((_, pool), (kind, theirs)) = (found.ours, found.theirs);
            return Err(Overlaps { pool, kind, theirs, cluster: name.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_inside_a_members_network_is_refused() {
        let pool: Pool = "10.9.0.0/28".parse().unwrap();
        let networks = |pods: &str, services: &str| Networks {
            pods: pods.parse().unwrap(),
            services: services.parse().unwrap(),
            ..Networks::default()
        };
        let fine = networks("10.1.0.0/16", "10.96.0.0/16");
        assert_eq!(fits(&pool, [("east", &fine)].into_iter()), Ok(()));
        for (theirs, want) in [
            (networks("10.9.0.0/16", ""), "overlaps the pod network 10.9.0.0/16 of west"),
            (networks("", "10.0.0.0/8"), "overlaps the service network 10.0.0.0/8 of west"),
        ] {
            let refused = fits(&pool, [("east", &fine), ("west", &theirs)].into_iter()).unwrap_err();
            assert!(refused.to_string().contains(want), "{refused}");
        }
    }
}
