//! Which namespaces cross, and which clusters may export and import what: the operator's word.
//!
//! ```text
//!   a namespace                                     who exports and imports it
//!   of a control plane, or the hub's own            no cluster, unless it is allowed by its very name
//!   denied by a flag                                no cluster
//!   that a SharingPolicy selects                    those that the SharingPolicies which select it name
//!   any other                                       all clusters
//! ```
//! A `SharingPolicy` concerns the namespaces that it selects, and no others. Policies add up; their order means nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::namespace::is_control_plane;
use serde::{Deserialize, Serialize};

use crate::limits::{self, Exceeded, Limit};
use crate::names::{ClusterId, Namespace};
use crate::world::Holding;

/// A name, or a name with `*` for any part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Takes any text: what is no name matches nothing.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether it means this name.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut last = None;
        for part in parts {
            if let Some(before) = last.replace(part) {
                let Some(at) = rest.find(before) else { return false };
                rest = rest.get(at + before.len()..).unwrap_or_default();
            }
        }
        last.map_or(rest.is_empty(), |last| rest.ends_with(last))
    }
}

/// A `SharingPolicy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The namespaces that it concerns.
    pub namespaces: Vec<Pattern>,
    /// The clusters whose exports of them count.
    pub export_from: Vec<Pattern>,
    /// The clusters that import them.
    pub import_into: Vec<Pattern>,
    /// So many services each cluster may export from these namespaces together.
    pub services: Option<u32>,
    /// So many endpoints each cluster may have of one service.
    pub endpoints: Option<u32>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fences {
    /// Namespaces that cross although they are a control plane's: by their very names.
    pub allowed: BTreeSet<Namespace>,
    /// Namespaces that never cross.
    pub denied: Vec<Pattern>,
    /// Where the hub keeps what is its own.
    pub own: Option<Namespace>,
    /// The policies.
    pub policies: Vec<Policy>,
}

/// Why something does not cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fenced {
    /// The namespace is a control plane's.
    SystemNamespace,
    /// The hub's operator denies the namespace.
    DeniedNamespace,
    /// `SharingPolicies` select the namespace, and none names the cluster.
    NotAllowed,
}

/// What counts for one namespace.
#[derive(Debug)]
pub struct Fence<'a> {
    closed: Option<Fenced>,
    policies: Vec<&'a Policy>, // does not allocate where there are none
}

impl Fences {
    /// What counts for a namespace.
    pub fn around(&self, namespace: &Namespace) -> Fence<'_> {
        let name = namespace.as_str();
        let system = is_control_plane(name) || self.own.as_ref() == Some(namespace);
        // What is a control plane's is never meant by a pattern.
        let selects = |pattern: &Pattern| if system { *pattern.0 == *name } else { pattern.matches(name) };
        let policies: Vec<&Policy> =
            self.policies.iter().filter(|policy| policy.namespaces.iter().any(selects)).collect();
        let closed = if self.denied.iter().any(|pattern| pattern.matches(name)) {
            Some(Fenced::DeniedNamespace)
        } else if system && policies.is_empty() && !self.allowed.contains(namespace) {
            Some(Fenced::SystemNamespace)
        } else {
            None
        };
        Fence { closed, policies }
    }
}

impl Fence<'_> {
    /// Why nothing of the namespace crosses, if that is so.
    pub fn closed(&self) -> Option<Fenced> {
        self.closed
    }

    /// Do a cluster's exports count?
    pub fn export(&self, from: &ClusterId) -> Result<(), Fenced> {
        self.passes(from, |policy| &policy.export_from)
    }

    /// May a cluster import?
    pub fn import(&self, into: &ClusterId) -> Result<(), Fenced> {
        self.passes(into, |policy| &policy.import_into)
    }

    fn passes(&self, id: &ClusterId, side: impl Fn(&Policy) -> &Vec<Pattern>) -> Result<(), Fenced> {
        if let Some(why) = self.closed {
            return Err(why);
        }
        let named = |policy: &&Policy| side(policy).iter().any(|pattern| pattern.matches(id.as_str()));
        if self.policies.is_empty() || self.policies.iter().any(named) {
            Ok(())
        } else {
            Err(Fenced::NotAllowed)
        }
    }

    /// Are there more endpoints than a policy allows?
    pub fn endpoints(&self, holding: &Holding) -> Result<(), Exceeded> {
        let Some(most) = self.policies.iter().filter_map(|policy| policy.endpoints).min() else {
            return Ok(());
        };
        Exceeded::check(Limit::PolicyEndpoints, most, limits::endpoints(holding), most)
    }

    /// Is there room for one more export of a cluster?
    pub fn room(&self, id: &ClusterId, exports: &Exports) -> Result<(), Exceeded> {
        Exceeded::check(Limit::Exports, limits::EXPORTS, exports.of(id) + 1, limits::EXPORTS)?;
        for policy in &self.policies {
            if let Some(most) = policy.services {
                let there = exports.within(id, &policy.namespaces);
                Exceeded::check(Limit::PolicyServices, most, there + 1, most)?;
            }
        }
        Ok(())
    }
}

/// How many exports of each cluster are remembered, by namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exports(BTreeMap<ClusterId, (usize, BTreeMap<Namespace, usize>)>);

impl Exports {
    /// One more.
    pub(crate) fn add(&mut self, id: &ClusterId, namespace: &Namespace) {
        let (all, by_namespace) = self.0.entry(id.clone()).or_default();
        *all += 1;
        *by_namespace.entry(namespace.clone()).or_default() += 1;
    }

    /// One fewer.
    pub(crate) fn remove(&mut self, id: &ClusterId, namespace: &Namespace) {
        let Some((all, by_namespace)) = self.0.get_mut(id) else { return };
        *all = all.saturating_sub(1);
        if let Some(count) = by_namespace.get_mut(namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                by_namespace.remove(namespace);
            }
        }
        if *all == 0 {
            self.0.remove(id);
        }
    }

    /// Of a cluster.
    pub fn of(&self, id: &ClusterId) -> usize {
        self.0.get(id).map_or(0, |(all, _)| *all)
    }

    fn within(&self, id: &ClusterId, namespaces: &[Pattern]) -> usize {
        let counts = self.0.get(id).into_iter().flat_map(|(_, by_namespace)| by_namespace);
        let meant =
            counts.filter(|(name, _)| namespaces.iter().any(|pattern| pattern.matches(name.as_str())));
        meant.map(|(_, count)| *count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{id, namespace};

    fn patterns(text: &str) -> Vec<Pattern> {
        text.split_whitespace().map(Pattern::new).collect()
    }

    fn policy(namespaces: &str, export_from: &str, import_into: &str) -> Policy {
        Policy {
            namespaces: patterns(namespaces),
            export_from: patterns(export_from),
            import_into: patterns(import_into),
            ..Policy::default()
        }
    }

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, name, want) in [
            ("shop", "shop", true),
            ("shop", "shop-2", false),
            ("*", "shop", true),
            ("team-*", "team-a", true),
            ("team-*", "a-team-a", false),
            ("*-prod", "shop-prod", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
            ("", "shop", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn system_namespaces_do_not_cross_unless_they_are_named() {
        let mut fences = Fences { own: Some(namespace("hub-things")), ..Fences::default() };
        let closed = |fences: &Fences, name: &str| fences.around(&namespace(name)).closed();
        for name in
            ["kube-system", "kube-public", "kube-node-lease", "atoll-system", "karmada-system", "hub-things"]
        {
            assert_eq!(closed(&fences, name), Some(Fenced::SystemNamespace), "{name}");
        }
        assert_eq!((closed(&fences, "shop"), closed(&fences, "default")), (None, None));
        fences.policies = vec![policy("* kube-*", "*", "*")];
        assert_eq!(closed(&fences, "kube-system"), Some(Fenced::SystemNamespace), "no pattern means it");
        fences.policies.push(policy("kube-system", "paris", "*"));
        assert_eq!(closed(&fences, "kube-system"), None);
        fences.policies.clear();
        fences.allowed.insert(namespace("kube-system"));
        assert_eq!(closed(&fences, "kube-system"), None);
        fences.denied = patterns("kube-* shop");
        assert_eq!(closed(&fences, "kube-system"), Some(Fenced::DeniedNamespace), "a denial comes first");
        assert_eq!(closed(&fences, "shop"), Some(Fenced::DeniedNamespace));
    }

    #[test]
    fn a_namespace_that_a_policy_selects_is_closed_but_for_what_policies_name() {
        let policies = vec![policy("shop team-*", "paris", "eu-*"), policy("shop", "", "tokyo")];
        let fences = Fences { policies, ..Fences::default() };
        for (name, cluster, exports, imports) in [
            ("shop", "paris", true, false),
            ("shop", "tokyo", false, true),
            ("shop", "eu-1", false, true),
            ("team-a", "tokyo", false, false),
            ("team-a", "eu-1", false, true),
            ("blog", "tokyo", true, true),
        ] {
            let name = namespace(name);
            let fence = fences.around(&name);
            let got = (fence.export(&id(cluster)).is_ok(), fence.import(&id(cluster)).is_ok());
            assert_eq!(got, (exports, imports), "{name} {cluster}");
        }
    }
}
