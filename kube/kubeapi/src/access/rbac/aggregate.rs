//! Cluster roles that gather the rules of others by label.

use super::{Authorizer, Role, Rule};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// One selector of an aggregation rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Gather {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Gather {
    pub(super) fn read(aggregation: &Value) -> Vec<Self> {
        aggregation.get("clusterRoleSelectors").and_then(|all| Vec::deserialize(all).ok()).unwrap_or_default()
    }

    fn takes(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.holds(labels))
    }
}

impl Expression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let found = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => found.is_some_and(|value| self.values.contains(value)),
            "NotIn" => found.is_none_or(|value| !self.values.contains(value)),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            // Validation lets no other pass; one that did gathers nothing.
            _ => false,
        }
    }
}

/// Rules, each once.
#[derive(Default)]
struct Gathered<'a> {
    in_order: Vec<&'a Rule>,
    known: HashSet<&'a Rule>,
}

impl Authorizer {
    /// The rules that an aggregating cluster role gathers now: what its `rules` should be. None if it isn't one.
    pub fn aggregated(&self, name: &str) -> Option<Vec<Rule>> {
        self.gathered().get(name).cloned()
    }

    /// The cluster roles that gather.
    pub fn aggregating(&self) -> impl Iterator<Item = &str> {
        self.cluster_roles().filter(|(_, role)| role.gathers.is_some()).map(|(name, _)| name.as_str())
    }

    /// What each of them gathers.
    pub(super) fn gathered(&self) -> &BTreeMap<String, Vec<Rule>> {
        self.gathered.get_or_init(|| {
            let gather = |name: &str| {
                let mut rules = Gathered::default();
                self.gather(name, &mut BTreeSet::new(), &mut rules);
                (name.to_owned(), rules.in_order.into_iter().cloned().collect())
            };
            self.aggregating().map(gather).collect()
        })
    }

    /// Roles in order of their names, each rule once. `passed` are those above: roles may gather each other.
    fn gather<'a>(&'a self, name: &'a str, passed: &mut BTreeSet<&'a str>, rules: &mut Gathered<'a>) {
        let Some(role) = self.cluster_role(name) else { return };
        let Some(gathers) = &role.gathers else {
            for rule in &role.rules {
                if rules.known.insert(rule) {
                    rules.in_order.push(rule);
                }
            }
            return;
        };
        if !passed.insert(name) {
            return;
        }
        for gather in gathers {
            for (other, role) in self.cluster_roles() {
                if other != name && gather.takes(&role.labels) {
                    self.gather(other, passed, rules);
                }
            }
        }
    }

    fn cluster_role(&self, name: &str) -> Option<&Role> {
        self.roles.get("")?.get(name).map(AsRef::as_ref)
    }

    fn cluster_roles(&self) -> impl Iterator<Item = (&String, &Role)> {
        self.roles.get("").into_iter().flatten().map(|(name, role)| (name, role.as_ref()))
    }
}
