//! Privilege escalation: a user may grant only what the user has. does what a user may do cover what they would grant?

use super::rule::{any_or, path_in, quoted};
use super::{Authorizer, Rule};
use crate::access::authn::User;
use std::collections::BTreeSet;

/// A user would grant what they don't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "user {user:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
    lacking.join("\n")
)]
pub struct Escalation {
    user: String,
    groups: String,
    /// What they lack, in order.
    lacking: Vec<String>,
    unresolved: String,
}

impl Authorizer {
    /// What of `rules` the user doesn't have in `namespace` (or across the cluster, if empty). The server asks before that
    /// whether the user is in `system:masters`, or may `escalate` the role or `bind` it: then anything goes.
    ///
    /// # Errors
    /// There is something.
    pub fn uncovered(&self, user: &User, namespace: &str, rules: &[Rule]) -> Result<(), Escalation> {
        let (own, missing) = self.rules_for(user, namespace);
        let lacking: Vec<Rule> =
            rules.iter().flat_map(atoms).filter(|atom| !own.iter().any(|rule| covers(rule, atom))).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let lacking: BTreeSet<String> = compacted(lacking).iter().map(Rule::text).collect();
        Err(Escalation {
            user: user.name.clone(),
            groups: quoted(&user.groups),
            lacking: lacking.into_iter().collect(),
            unresolved: if missing.is_empty() {
                String::new()
            } else {
                format!("; resolution errors: [{}]", missing.join(" "))
            },
        })
    }

    /// The rules of the role that a binding in `namespace` refers to.
    ///
    /// # Errors
    /// There is no such role; the text is what the real server says.
    pub fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> Result<Vec<Rule>, String> {
        let role = super::RoleRef { kind: kind.into(), name: name.into() };
        self.rules_of(&role, namespace).map(<[Rule]>::to_vec)
    }
}

/// A rule in its smallest parts: one verb, one resource or path, one name.
fn atoms(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut atoms = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let atom = Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    atoms.push(atom);
                } else {
                    let named = |name| Rule { resource_names: one(name), ..atom.clone() };
                    atoms.extend(rule.resource_names.iter().map(named));
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        let path = |verb| Rule { verbs: one(verb), non_resource_urls: one(url), ..Rule::default() };
        atoms.extend(rule.verbs.iter().map(path));
    }
    atoms
}

fn covers(own: &Rule, atom: &Rule) -> bool {
    let all = |own: &[String], wanted: &[String]| wanted.iter().all(|wanted| any_or(own, wanted));
    let resource = |wanted: &String| {
        any_or(&own.resources, wanted)
            || wanted
                .split_once('/')
                .is_some_and(|(_, subresource)| own.resources.contains(&format!("*/{subresource}")))
    };
    all(&own.verbs, &atom.verbs)
        && all(&own.api_groups, &atom.api_groups)
        && atom.resources.iter().all(resource)
        && atom
            .non_resource_urls
            .iter()
            .all(|path| own.non_resource_urls.iter().any(|url| path_in(url, path)))
        && (own.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom.resource_names.iter().all(|name| own.resource_names.contains(name))))
}

/// Atoms of the same resource and name become one rule with all their verbs.
fn compacted(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for atom in atoms {
        let same = |rule: &&mut Rule| {
            atom.non_resource_urls.is_empty()
                && rule.non_resource_urls.is_empty()
                && (&rule.api_groups, &rule.resources, &rule.resource_names)
                    == (&atom.api_groups, &atom.resources, &atom.resource_names)
        };
        match rules.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => rules.push(atom),
        }
    }
    rules
}
