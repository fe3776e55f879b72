//! A member that is spoken to by words alone: what it says before it is started, when it is cleaned, and when its lease has ended.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::policy::ConflictResolution;
use atoll_link::{CopyState, Down, Health, Lease, Order, Up};
use atoll_member::{Clients, Handle, Uplink, enter, spawn};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::mpsc;

use crate::clusters::{Cluster, Clusters, PATIENCE};
use crate::hub::identity;

type Outcome = anyhow::Result<()>;

/// A member, and what it says.
struct Spoken {
    member: Handle,
    said: mpsc::UnboundedReceiver<Up>,
}

impl Spoken {
    fn open(cluster: &Cluster) -> anyhow::Result<Self> {
        let (tell, said) = mpsc::unbounded_channel();
        let up = Uplink::new(move |up| drop(tell.send(up)));
        let clients: Clients = cluster.clients();
        Ok(Self { member: spawn(identity(cluster.name())?.cluster, clients, up), said })
    }

    fn tell(&self, down: Down) {
        self.member.downlink().send(Instant::now(), down);
    }

    /// Waits for a word.
    async fn says<T>(&mut self, mut of: impl FnMut(Up) -> Option<T>) -> anyhow::Result<T> {
        let heard = async {
            loop {
                match self.said.recv().await {
                    Some(up) => match of(up) {
                        Some(found) => return Ok(found),
                        None => continue,
                    },
                    None => bail!("it says nothing any more"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.context("it did not say so in time")?
    }
}

fn config_map() -> (ObjectKey, Order) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default"}, "data": {"a": "1"}});
    let key = ObjectKey::of(&object).unwrap();
    (key, Order::Hold { object: object.into(), conflict: ConflictResolution::Abort })
}

fn there(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), "default")
}

#[tokio::test]
async fn a_member_says_which_cluster_it_is_and_nothing_else_before_it_is_started() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let namespaces: Api<Namespace> = Api::all(one.client());
    let system = match namespaces.get_opt("kube-system").await? {
        Some(found) => found,
        None => {
            let made = serde_json::from_value(json!({"metadata": {"name": "kube-system"}}))?;
            namespaces.create(&PostParams::default(), &made).await?
        }
    };
    let mut spoken = Spoken::open(one)?;
    spoken.tell(Down::Identify);
    let first = spoken.says(Some).await?;
    let Up::Identity { uid: Some(uid), .. } = first else { bail!("{first:?}") };
    ensure!(Some(uid.as_str()) == system.metadata.uid.as_deref(), "{uid}");
    Ok(())
}

#[tokio::test]
async fn a_started_member_tells_its_health_and_says_when_it_has_stopped() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let mut spoken = Spoken::open(one)?;
    spoken.tell(Down::Start(identity(one.name())?));
    let health = spoken.says(|up| if let Up::Health(health) = up { Some(health) } else { None }).await?;
    ensure!(matches!(&health, Health::Ready { version } if version.starts_with('v')), "{health:?}");
    spoken.tell(Down::Stop);
    spoken.says(|up| (up == Up::Stopped).then_some(())).await
}

#[tokio::test]
async fn a_member_is_cleaned_by_a_word_and_says_so() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let identity = identity(one.name())?;
    enter(&identity, &one.clients()).await?;
    let mut spoken = Spoken::open(one)?;
    spoken.tell(Down::Lease(Lease::Held(Duration::from_secs(3600))));
    spoken.tell(Down::Start(identity.clone()));
    let (key, order) = config_map();
    spoken.tell(Down::Order { key, order });
    let applied = |up| matches!(up, Up::Copy(said) if matches!(said.state, CopyState::Applied { .. }));
    spoken.says(|up| applied(up).then_some(())).await?;
    spoken.tell(Down::Stop);
    spoken.says(|up| (up == Up::Stopped).then_some(())).await?;
    let kinds = BTreeSet::from([Kind::new("v1", "ConfigMap")]);
    spoken.tell(Down::Clean { identity: identity.clone(), kinds });
    spoken.says(|up| (up == Up::Cleaned).then_some(())).await?;
    ensure!(there(one).get_opt("settings").await?.is_none(), "the copy is still there");
    spoken.tell(Down::GiveBack(identity));
    spoken.says(|up| (up == Up::GaveBack).then_some(())).await
}

#[tokio::test]
async fn a_lease_that_came_too_late_lets_nothing_be_written() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let identity = identity(one.name())?;
    enter(&identity, &one.clients()).await?;
    let recorder = one.recorder();
    let mut spoken = Spoken::open(one)?;
    // It waited for longer than it lasts.
    let sent = Instant::now() - Duration::from_secs(11);
    spoken.member.downlink().send(sent, Down::Lease(Lease::Held(Duration::from_secs(10))));
    spoken.tell(Down::Start(identity.clone()));
    let (key, order) = config_map();
    spoken.tell(Down::Order { key, order });
    // All has been listed, and nothing but the right is missing.
    let heard = |up| matches!(up, Up::Change(atoll_engine::world::Change::Heard(_)));
    spoken.says(|up| heard(up).then_some(())).await?;
    let writes = |noted: &crate::clusters::Noted| !matches!(noted.verb, "get" | "list" | "watch");
    let written: Vec<_> = recorder.requests().into_iter().filter(writes).collect();
    ensure!(
        written.iter().all(|noted| noted.name.starts_with("atoll-dry-run-") || noted.name.is_empty()),
        "{written:?}"
    );
    ensure!(there(one).get_opt("settings").await?.is_none());
    // One that has just been sent does.
    spoken.tell(Down::Lease(Lease::Held(Duration::from_secs(10))));
    let applied = |up| matches!(up, Up::Copy(said) if matches!(said.state, CopyState::Applied { .. }));
    spoken.says(|up| applied(up).then_some(())).await?;
    ensure!(there(one).get_opt("settings").await?.is_some());
    Ok(())
}
