//! A read-only copy, in the hub's API, of the slices of services that are exported through the hub: Karmada's users look for them there,
//! under `derived-<service>`. Written after the members, and never read back.
//!
//! [`Mirror`] decides and knows no socket; `mcs::write` writes.

mod controller;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::{annotation, label, managed_by};
use atoll_api::types::ServiceExport;
use atoll_engine::names::{ClusterId, ServiceKey, SliceName};
use atoll_engine::plan::{ImportPlan, Plan, Slice, SlicesFrom};
use atoll_watch::{Change, Config, Known};
use futures_util::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use controller::{Controller, Exported};

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Hold this copy.
    Put(ServiceKey, Arc<Slice>),
    /// Hold none of this name.
    Delete(ServiceKey, SliceName),
}

/// A copy in the hub's API.
#[derive(Debug)]
struct Copy {
    source: Option<ClusterId>,
    /// None if it is of a former life.
    is: Option<Arc<Slice>>,
}

/// Which services are exported through the hub, and the copies that there are.
#[derive(Debug, Default)]
struct Mirror {
    exported: BTreeSet<ServiceKey>,
    copies: BTreeMap<ServiceKey, BTreeMap<SliceName, Copy>>,
}

impl Mirror {
    /// A copy of a former life.
    fn recall(&mut self, object: &EndpointSlice) -> Option<ServiceKey> {
        let service = object.labels().get(label::MCS_SERVICE_NAME)?;
        let key = ServiceKey::parse(&object.namespace()?, service).ok()?;
        let name = SliceName::parse(object.name_any()).ok()?;
        let source = object.annotations().get(annotation::PROVISION_CLUSTER);
        let source = source.and_then(|id| ClusterId::parse(id.as_str()).ok());
        self.copies.entry(key.clone()).or_default().insert(name, Copy { source, is: None });
        Some(key)
    }

    /// A service is exported through the hub, or not any more.
    fn exported(&mut self, key: ServiceKey, exported: bool) {
        if exported {
            self.exported.insert(key);
        } else {
            self.exported.remove(&key);
        }
    }

    /// What has to be written now that this is planned. Nothing is taken away for want of a plan.
    fn look_at(&mut self, key: &ServiceKey, plan: Option<&Plan>) -> Vec<Command> {
        let exported = self.exported.contains(key);
        let Some(plan) = plan.filter(|_| exported) else {
            let gone = if exported { None } else { self.copies.remove(key) };
            return gone.into_iter().flatten().map(|(name, _)| Command::Delete(key.clone(), name)).collect();
        };
        let parts = || plan.clusters.values().map(|part| &part.import);
        let untouched = parts().any(|import| matches!(import, ImportPlan::Untouched(_)));
        if untouched && !parts().any(|import| matches!(import, ImportPlan::Present { .. })) {
            return Vec::new(); // nothing is known
        }
        let (wanted, kept) = wanted(plan);
        let copies = self.copies.entry(key.clone()).or_default();
        let mut commands = Vec::new();
        copies.retain(|name, copy| {
            let stays = wanted.contains_key(name) || copy.source.as_ref().is_some_and(|id| kept.contains(id));
            if !stays {
                commands.push(Command::Delete(key.clone(), name.clone()));
            }
            stays
        });
        for (name, slice) in wanted {
            let same = copies.get(&name).and_then(|copy| copy.is.as_ref()).is_some_and(|is| *is == slice);
            if !same {
                let (source, is) = (Some(slice.source.clone()), Some(Arc::clone(&slice)));
                copies.insert(name, Copy { source, is });
                commands.push(Command::Put(key.clone(), slice));
            }
        }
        if copies.is_empty() {
            self.copies.remove(key);
        }
        commands
    }
}

/// The slices of all sources as others hold them, and the sources whose slices are not known.
fn wanted(plan: &Plan) -> (BTreeMap<SliceName, Arc<Slice>>, BTreeSet<ClusterId>) {
    let (mut wanted, mut kept) = (BTreeMap::new(), BTreeSet::new());
    for (importer, part) in &plan.clusters {
        let ImportPlan::Present { slices, .. } = &part.import else { continue };
        for (source, from) in &**slices {
            match from {
                SlicesFrom::Exactly(list, _) => {
                    for slice in &**list {
                        // A source's own has node names: others' are preferred.
                        if importer != source || !wanted.contains_key(&slice.name) {
                            wanted.insert(slice.name.clone(), Arc::clone(slice));
                        }
                    }
                }
                SlicesFrom::KeepWhatIsThere(_) => drop(kept.insert(source.clone())),
                SlicesFrom::Nothing(_) => {}
            }
        }
    }
    (wanted, kept)
}

/// The copies that there are.
async fn list(client: &Client, hub: &str) -> Result<Vec<EndpointSlice>, kube::Error> {
    let ours = format!("{}={hub},{}={}", label::HUB, label::MANAGED_BY, managed_by::KARMADA_IMPORT);
    Ok(Api::<EndpointSlice>::all(client.clone()).list(&ListParams::default().labels(&ours)).await?.items)
}

/// Watches which services are exported through the hub; none is sent when all that are have been.
async fn watch(client: Client, seen: UnboundedSender<Option<(ServiceKey, bool)>>) {
    let api = Api::<PartialObjectMeta<ServiceExport>>::all(client);
    let mut stream = std::pin::pin!(atoll_watch::watch(api, Config::default()));
    let mut known = Known::default();
    while let Some(event) = stream.next().await {
        for change in
            known.take(event, |export| ServiceKey::parse(&export.namespace()?, &export.name_any()).ok())
        {
            let change = match change {
                Change::Seen(key, _) => Some((key, true)),
                Change::Gone(key) => Some((key, false)),
                Change::Listed => None,
                Change::Failed(failure) => {
                    tracing::warn!(%failure, "cannot watch ServiceExports in the hub's API");
                    continue;
                }
            };
            let _ = seen.send(change);
        }
        if seen.is_closed() {
            return;
        }
    }
}
