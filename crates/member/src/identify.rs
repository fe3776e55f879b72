//! Which cluster this is: asked before anything is done there. Until its API answers it counts as silent.

use std::time::{Duration, Instant};

use atoll_engine::names::Uid;
use atoll_link::{Health, Up};
use atoll_watch::why;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use crate::Uplink;
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

/// Asks for as long as it takes.
pub(crate) async fn until_known(member: Client, up: Uplink) {
    let mut pause = FIRST_PAUSE;
    loop {
        let asked = Instant::now();
        let (health, why) = match tokio::time::timeout(DEADLINE, cluster_uid(&member)).await {
            Ok(Ok(uid)) => {
                return up.send(Up::Identity { uid: uid.and_then(|uid| Uid::parse(uid).ok()) });
            }
            Ok(Err(error)) => {
                let why = why(&error);
                match code(&error) {
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
