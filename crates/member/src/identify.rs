//! Which cluster this is: asked before anything is done there. Until its API answers it counts as silent.

use std::time::{Duration, Instant};

use atoll_api::names::{label, property};
use atoll_api::types::ClusterProperty;
use atoll_engine::names::{ClusterId, Uid};
pub use atoll_link::Called;
use atoll_link::{Health, Up};
use atoll_watch::why;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

use crate::Uplink;
use crate::health::rejected;
use crate::shell::failure::code;

/// How long it may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The uid of a cluster: that of its namespace kube-system, if there is one.
pub async fn cluster_uid(client: &Client) -> Result<Option<String>, kube::Error> {
    let namespace = Api::<Namespace>::all(client.clone()).get_opt("kube-system").await?;
    Ok(namespace.and_then(|namespace| namespace.metadata.uid))
}

/// What a hub calls this cluster, by the property that it keeps there; none if there is no such property, or we may not see it.
pub async fn called(client: &Client) -> Result<Option<Called>, kube::Error> {
    let found = match Api::<ClusterProperty>::all(client.clone()).get_opt(property::CLUSTER_ID).await {
        Ok(found) => found,
        Err(error) if matches!(code(&error), Some(403 | 404)) => None,
        Err(error) => return Err(error),
    };
    Ok(found.and_then(|property| {
        let hub = property.labels().get(label::HUB)?.clone();
        Some(Called { hub, cluster: ClusterId::parse(property.spec.value).ok()? })
    }))
}

async fn identity(client: &Client) -> Result<Up, kube::Error> {
    let uid = cluster_uid(client).await?.and_then(|uid| Uid::parse(uid).ok());
    Ok(Up::Identity { uid, called: called(client).await? })
}

/// Asks for as long as it takes.
pub(crate) async fn until_known(cluster: ClusterId, member: Client, up: Uplink) {
    let mut pause = FIRST_PAUSE;
    loop {
        let asked = Instant::now();
        let (health, why) = match tokio::time::timeout(DEADLINE, identity(&member)).await {
            Ok(Ok(identity)) => return up.send(identity),
            Ok(Err(error)) => {
                let why = why(&error);
                match code(&error) {
                    Some(401) => {
                        let why = rejected(&cluster, &why);
                        (Health::NotReady { why: why.clone() }, why)
                    }
                    Some(_) => (Health::NotReady { why: why.clone() }, why),
                    None => (Health::NotReachable { why: why.clone() }, why),
                }
            }
            Err(_) => {
                let why = format!("no answer within {} s", DEADLINE.as_secs());
                (Health::NotReachable { why: why.clone() }, why)
            }
        };
        up.send(Up::Unreachable { silent_for: asked.elapsed(), why });
        up.send(Up::Health(health));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
