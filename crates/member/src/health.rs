//! How the member's API is: asked often, and told whenever it was asked.

mod lacking;

use std::sync::Arc;
use std::time::Duration;

use atoll_engine::names::ClusterId;
use atoll_link::{Health, Up};
use atoll_watch::why;
use kube::Client;
use tokio::sync::Notify;

use crate::Uplink;
use crate::shell::failure::code;
use lacking::{Lacking, Right};

/// How often it is asked when nothing happens.
const PERIOD: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// What makes us look at once, and what is known to be missing. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doctor {
    kick: Arc<Notify>,
    lacking: Lacking,
}

impl Doctor {
    /// Its health may have changed.
    pub(crate) fn look(&self) {
        self.kick.notify_one();
    }

    /// A right is missing.
    pub(crate) fn forbidden(&self, right: Right, why: String) {
        self.lacking.note(right, why);
        self.look();
    }
}

/// Tells the health for as long as it is let.
pub(crate) async fn keep(cluster: ClusterId, member: Client, doctor: Doctor, up: Uplink) {
    loop {
        let mut health = ask(&cluster, &member).await;
        if let Health::Ready { .. } = health {
            doctor.lacking.look_again(&member).await;
            health = doctor.lacking.first().map_or(health, |why| Health::NotReady { why });
        }
        up.send(Up::Health(health));
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = doctor.kick.notified() => {}
        }
    }
}

/// What is said of a member whose API does not know our token.
pub(crate) fn rejected(cluster: &ClusterId, why: &str) -> String {
    format!(
        "the hub's token was rejected ({why}): it has expired or was revoked; run `atoll join {cluster} --cluster-kubeconfig FILE` again"
    )
}

/// Asks a member's API how it is.
async fn ask(cluster: &ClusterId, member: &Client) -> Health {
    let ready = http::Request::get("/readyz").body(Vec::new());
    let Ok(ready) = ready else { return Health::NotReady { why: "bad request".to_owned() } };
    match tokio::time::timeout(DEADLINE, member.request_text(ready)).await {
        Err(_) => return Health::NotReachable { why: format!("no answer within {} s", DEADLINE.as_secs()) },
        Ok(Err(error)) => match code(&error) {
            Some(403 | 404) => {} // it answers, and does not say: then the version has to do
            Some(401) => return Health::NotReady { why: rejected(cluster, &why(&error)) },
            Some(_) => return Health::NotReady { why: why(&error) },
            None => return Health::NotReachable { why: why(&error) },
        },
        Ok(Ok(_)) => {}
    }
    match tokio::time::timeout(DEADLINE, member.apiserver_version()).await {
        Ok(Ok(version)) => Health::Ready { version: version.git_version },
        Ok(Err(error)) => Health::NoVersion { why: why(&error) },
        Err(_) => Health::NoVersion { why: format!("no answer within {} s", DEADLINE.as_secs()) },
    }
}
