//! What each cluster gets of a template: pruned, divided, overridden, and withheld where an author who had a hand in it could not
//! have made it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::{kind, label};
use serde_json::Value;

use super::access::{Access, Author, Counts, Refused, Stamp};
use super::object::{self, ObjectKey};
use super::overrides::{self, OverrideError};
use super::policy::PolicyId;
use super::select::Nowhere;
use super::{Copy, Decision, Placed, Placer, prune};
use crate::names::ClusterId;

/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Why a cluster does not get a copy: the one that it may have stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// An override can't be carried out.
    #[error(transparent)]
    Broken(#[from] OverrideError),
    /// A policy does not count.
    #[error("{policy} does not count: {why}")]
    Refused {
        /// The policy.
        policy: PolicyId,
        /// Why.
        why: Refused,
    },
    /// The policy that it was placed by is gone, and its author could not place it now.
    #[error("the policy that placed it does not count any more: {0}")]
    Outdated(Refused),
    /// It is not known yet.
    #[error("the rights of a policy's author are being checked")]
    Unchecked,
}

impl Placer {
    pub(super) fn placed(
        &mut self,
        key: &ObjectKey,
        template: &Value,
        decision: Option<Decision>,
        required_by: BTreeSet<ObjectKey>,
        nowhere: Option<Nowhere>,
    ) -> Placed {
        let parents: Vec<Decision> =
            required_by.iter().filter_map(|parent| self.decided.get(parent)).cloned().collect();
        // Each cluster with its replicas, and whether whoever brings it there may.
        let mut clusters: BTreeMap<ClusterId, (Option<i64>, Counts)> = BTreeMap::new();
        for parent in &parents {
            let counts = self.access.right(parent.author.as_ref(), key);
            for id in parent.clusters.keys() {
                let before = clusters.remove(id).map(|(_, counts)| counts);
                let counts = before.map_or(counts.clone(), |before| before.or(counts.clone()));
                clusters.insert(id.clone(), (None, counts));
            }
        }
        if let Some(decision) = &decision {
            // That of a policy which is there has been asked already; of one that is gone it may be otherwise by now.
            let counts = self.access.right(decision.author.as_ref(), key);
            let own =
                decision.clusters.iter().map(|(id, replicas)| (id.clone(), (*replicas, counts.clone())));
            clusters.extend(own);
        }
        let speaks = decision.as_ref().or_else(|| parents.first());
        let conflict = speaks.map(|decision| decision.conflict).unwrap_or_default();
        let pruned = prune::prune(template);
        let observed = is_made_by_members(key);
        let mut copies = BTreeMap::new();
        for (id, (replicas, counts)) in clusters {
            let Some(cluster) = self.clusters.get(&id) else { continue };
            let mut object = pruned.clone();
            if let Some(replicas) = replicas {
                set_replicas(&mut object, template, replicas);
            }
            if self.is_scaled_in(key, &id) {
                object["metadata"]["labels"][label::RETAIN_REPLICAS] = "true".into();
            }
            let Self { overrides, access, external_ips, .. } = self;
            let object = overrides::apply(overrides, key, object, &id, cluster).map_err(Withheld::from);
            let object = object.and_then(|(mut object, changed)| {
                if !*external_ips {
                    prune::without_external_ips(&mut object);
                }
                let by = speaks.and_then(|decision| decision.author.as_ref());
                let policy = speaks.and_then(|decision| decision.policy.as_ref());
                let there = cluster.asks_authors.then_some(&id);
                permitted(access, key, object, (policy, by, counts), &changed, there)
            });
            let suspended = speaks.is_some_and(|decision| decision.suspension.holds_up(id.as_str()));
            copies.insert(id, Copy { object: object.map(Arc::new), conflict, suspended, observed });
        }
        let unknown = decision.as_ref().map(|decision| self.unknown(&decision.placement)).unwrap_or_default();
        Placed { decision, required_by, nowhere, unknown, copies }
    }

    /// Whether an autoscaler of a workload goes to the cluster.
    fn is_scaled_in(&self, workload: &ObjectKey, id: &ClusterId) -> bool {
        let mut placed = self.autoscalers.of(workload).filter_map(|autoscaler| self.decided.get(autoscaler));
        placed.any(|decision| decision.clusters.contains_key(id))
    }
}

/// A copy, if every author who had a hand in it could have made it: in the hub, and in the member where that is asked too.
fn permitted(
    access: &mut Access,
    key: &ObjectKey,
    object: Value,
    (policy, by, counts): (Option<&PolicyId>, Option<&Arc<Author>>, Counts),
    changed: &[overrides::Changed<'_>],
    there: Option<&ClusterId>,
) -> Result<Value, Withheld> {
    let text: std::cell::OnceCell<Arc<str>> = std::cell::OnceCell::new();
    let text = || Arc::clone(text.get_or_init(|| object.to_string().into()));
    // Whoever brings a role somewhere grants what is in it.
    let grants = key.kind.group() == RBAC && by.is_some();
    let placed = counts.and(|| if grants { access.content(by, key, &text()) } else { Counts::Yes });
    let placed = placed.and(|| there.map_or(Counts::Yes, |id| access.there(by, id, key)));
    let mut unknown = match placed {
        Counts::Yes => false,
        Counts::Unknown => true,
        Counts::No(why) => {
            return Err(match policy {
                Some(policy) => {
                    access.refuse(policy, false, &why);
                    Withheld::Refused { policy: policy.clone(), why }
                }
                None => Withheld::Outdated(why),
            });
        }
    };
    for (policy, stamp) in changed {
        let counts = access.stamped(stamp, key);
        let counts = match stamp {
            Stamp::By(author) => counts
                .and(|| access.content(Some(author), key, &text()))
                .and(|| there.map_or(Counts::Yes, |id| access.there(Some(author), id, key))),
            Stamp::Unchecked | Stamp::Missing => counts,
        };
        match counts {
            Counts::Yes => {}
            Counts::Unknown => unknown = true,
            Counts::No(why) => {
                access.refuse(policy, true, &why);
                return Err(Withheld::Refused { policy: (*policy).clone(), why });
            }
        }
    }
    if unknown { Err(Withheld::Unchecked) } else { Ok(object) }
}

/// Puts a cluster's replicas into its copy; a Job's completions are divided in the same proportion.
fn set_replicas(object: &mut Value, template: &Value, replicas: i64) {
    let Some(at) = object::replicas_at(template) else { return };
    let all = object::replicas(template).unwrap_or(1);
    if all == replicas {
        return;
    }
    let completions = template.pointer("/spec/completions").and_then(Value::as_i64);
    if let (Some(completions), true, Some(spec)) = (completions, all > 0, object.get_mut("spec")) {
        // Rounded up: together the clusters do at least what was asked for.
        spec["completions"] = ((completions * replicas + all - 1) / all).into();
    }
    if let Some((parent, field)) = at.rsplit_once('/')
        && let Some(spec) = object.pointer_mut(parent)
    {
        spec[field] = replicas.into();
    }
}

/// Whether members have it without us: what services bring, and the CRDs that a join installs, which are never taken away.
fn is_made_by_members(key: &ObjectKey) -> bool {
    let installed = [
        (kind::about::CLUSTER_PROPERTIES, kind::about::GROUP),
        (kind::mcs::SERVICE_EXPORTS, kind::mcs::GROUP),
        (kind::mcs::SERVICE_IMPORTS, kind::mcs::GROUP),
    ];
    key.kind.is(kind::mcs::GROUP, kind::mcs::SERVICE_IMPORT)
        || (key.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
            && key.name.split_once('.').is_some_and(|name| installed.contains(&name)))
}
