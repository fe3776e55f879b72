//! One watch per kind, shared by all controllers.

use crate::controllers::action::Kind;
use crate::controllers::cache::{News, WATCHED};
use crate::controllers::{account, slices};
use atoll_watch::{Config, Event, watch};
use futures_util::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tracing::debug;

/// How many objects are in memory at once while a kind is listed.
const PAGE: u32 = 100;

/// Watches every kind until the set is dropped.
pub(super) fn all(client: &Client, events: &Sender<(Kind, News)>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for kind in WATCHED {
        tasks.spawn(follow(client.clone(), kind, events.clone()));
    }
    tasks
}

async fn follow(client: Client, kind: Kind, events: Sender<(Kind, News)>) {
    let api: Api<DynamicObject> = Api::all_with(client, &resource(kind));
    let mut config = Config::default().page(PAGE);
    match kind {
        // The slices of others are many, and none of our business.
        Kind::Slice => config = config.labels(&format!("{}={}", slices::MANAGED_BY, slices::MANAGER)),
        Kind::Account => config = config.fields(&format!("metadata.name={}", account::DEFAULT)),
        _ => {}
    }
    let mut stream = std::pin::pin!(watch(api, config));
    while let Some(next) = stream.next().await {
        let news = match next {
            Event::ListStarted => Some(News::Listing),
            Event::Listed => Some(News::Listed),
            Event::Seen(object) => value(object).map(News::Seen),
            Event::Gone(object) => value(object).map(News::Gone),
            Event::Following => None,
            Event::Failed(failure) => {
                debug!(?kind, %failure, "a watch failed");
                None
            }
        };
        if let Some(news) = news
            && events.send((kind, news)).await.is_err()
        {
            return;
        }
    }
}

fn value(mut object: DynamicObject) -> Option<Value> {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).ok()
}

/// How a kind is called in the API.
pub(super) fn resource(kind: Kind) -> ApiResource {
    let (group, name, plural) = match kind {
        Kind::Deployment => ("apps", "Deployment", "deployments"),
        Kind::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
        Kind::StatefulSet => ("apps", "StatefulSet", "statefulsets"),
        Kind::Revision => ("apps", "ControllerRevision", "controllerrevisions"),
        Kind::Job => ("batch", "Job", "jobs"),
        Kind::Pod => ("", "Pod", "pods"),
        Kind::Service => ("", "Service", "services"),
        Kind::Slice => ("discovery.k8s.io", "EndpointSlice", "endpointslices"),
        Kind::Node => ("", "Node", "nodes"),
        Kind::Namespace => ("", "Namespace", "namespaces"),
        Kind::Account => ("", "ServiceAccount", "serviceaccounts"),
    };
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version,
        kind: name.to_owned(),
        plural: plural.to_owned(),
    }
}
