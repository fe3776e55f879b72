//! Privilege escalation: a user may grant only what the user has. Does what a user may do cover what they would grant?

use super::rule::{path_in, quoted};
use super::{Authorizer, Rule};
use crate::access::authn::User;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How often a right that would be granted is compared with a rule that is held, at most: lists of a thousand groups, resources
/// and verbs in one rule make a thousand million rights.
const MOST_COMPARED: usize = 20_000_000;
/// How many that are lacking are counted before it is too many.
const MOST_LACKING: usize = 100_000;
/// How many rights that are lacking are told.
const MOST_TOLD: usize = 1000;

/// A user would grant what they don't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Escalation {
    /// There is something that they lack.
    #[error(
        "user {user:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
        lacking.join("\n")
    )]
    Lacking {
        /// Who.
        user: String,
        /// Their groups, as they are told.
        groups: String,
        /// What they lack, in order.
        lacking: Vec<String>,
        /// Roles that bindings name and that can't be found, as they are told.
        unresolved: String,
    },
    /// It can't be said in reasonable time.
    #[error(
        "the rules combine to too many permissions to compare with those that you hold; write shorter lists, or more roles"
    )]
    TooMany,
}

impl Authorizer {
    /// What of `rules` the user doesn't have in `namespace` (or across the cluster, if empty). The server asks before that
    /// whether the user is in `system:masters`, or may `escalate` the role or `bind` it: then anything goes.
    ///
    /// # Errors
    /// There is something, or too much to tell.
    pub fn uncovered(&self, user: &User, namespace: &str, rules: &[Rule]) -> Result<(), Escalation> {
        let (own, missing) = self.rules_for(user, namespace);
        let own: Vec<Held<'_>> = own.iter().map(Held::of).collect();
        let mut lacking = Lacking::default();
        let mut compared = 0;
        for right in rules.iter().flat_map(rights) {
            let mut held = false;
            for own in &own {
                compared += 1 + own.urls.len();
                held = own.covers(&right);
                if held {
                    break;
                }
            }
            if !held {
                lacking.add(right);
            }
            if compared > MOST_COMPARED || lacking.count > MOST_LACKING {
                return Err(Escalation::TooMany);
            }
        }
        let lacking = lacking.told();
        if lacking.is_empty() {
            return Ok(());
        }
        Err(Escalation::Lacking {
            user: user.name.clone(),
            groups: quoted(&user.groups),
            lacking,
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

/// The smallest part of a rule.
#[derive(Clone, Copy)]
enum Right<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str>, verb: &'a str },
    Path { url: &'a str, verb: &'a str },
}

/// A rule in its smallest parts: one verb, one resource or path, one name.
fn rights(rule: &Rule) -> impl Iterator<Item = Right<'_>> {
    let names = move || {
        let any = rule.resource_names.is_empty().then_some(None);
        any.into_iter().chain(rule.resource_names.iter().map(|name| Some(name.as_str())))
    };
    let resources = rule.api_groups.iter().flat_map(move |group| {
        rule.resources.iter().flat_map(move |resource| {
            rule.verbs.iter().flat_map(move |verb| {
                names().map(move |name| Right::Resource { group, resource, name, verb })
            })
        })
    });
    let paths = rule
        .non_resource_urls
        .iter()
        .flat_map(move |url| rule.verbs.iter().map(move |verb| Right::Path { url, verb }));
    resources.chain(paths)
}

/// A rule that the user has, ready to be asked often.
struct Held<'a> {
    verbs: HashSet<&'a str>,
    groups: HashSet<&'a str>,
    resources: HashSet<&'a str>,
    names: HashSet<&'a str>,
    urls: &'a [String],
}

impl<'a> Held<'a> {
    fn of(rule: &'a Rule) -> Self {
        let set = |values: &'a [String]| values.iter().map(String::as_str).collect();
        Self {
            verbs: set(&rule.verbs),
            groups: set(&rule.api_groups),
            resources: set(&rule.resources),
            names: set(&rule.resource_names),
            urls: &rule.non_resource_urls,
        }
    }

    fn covers(&self, right: &Right<'_>) -> bool {
        let any_or = |own: &HashSet<&str>, wanted: &str| own.contains("*") || own.contains(wanted);
        match *right {
            Right::Resource { group, resource, name, verb } => {
                let of_all = || {
                    let (_, subresource) = resource.split_once('/')?;
                    Some(self.resources.contains(format!("*/{subresource}").as_str()))
                };
                any_or(&self.verbs, verb)
                    && any_or(&self.groups, group)
                    && (any_or(&self.resources, resource) || of_all().unwrap_or(false))
                    && (self.names.is_empty() || name.is_some_and(|name| self.names.contains(name)))
            }
            Right::Path { url, verb } => {
                any_or(&self.verbs, verb)
                    && self.names.is_empty()
                    && self.urls.iter().any(|own| path_in(own, url))
            }
        }
    }
}

/// What is lacking: of the same resource and name one rule with all its verbs.
#[derive(Default)]
struct Lacking<'a> {
    resources: BTreeMap<(&'a str, &'a str, Option<&'a str>), Vec<&'a str>>,
    paths: BTreeSet<(&'a str, &'a str)>,
    count: usize,
}

impl<'a> Lacking<'a> {
    fn add(&mut self, right: Right<'a>) {
        self.count += 1;
        match right {
            Right::Resource { group, resource, name, verb } => {
                self.resources.entry((group, resource, name)).or_default().push(verb);
            }
            Right::Path { url, verb } => {
                self.paths.insert((url, verb));
            }
        }
    }

    fn told(&self) -> Vec<String> {
        let one = |text: &str| vec![text.to_owned()];
        let resources = self.resources.iter().map(|((group, resource, name), verbs)| Rule {
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            api_groups: one(group),
            resources: one(resource),
            resource_names: name.map(one).unwrap_or_default(),
            ..Rule::default()
        });
        let paths = self.paths.iter().map(|(url, verb)| Rule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..Rule::default()
        });
        let told: BTreeSet<String> = resources.chain(paths).take(MOST_TOLD).map(|rule| rule.text()).collect();
        told.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_that_combine_to_a_thousand_million_rights_are_refused() {
        let mut access = Authorizer::default();
        access.put(
            "roles",
            &json!({"metadata": {"namespace": "a", "name": "r"}, "rules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            ]}),
        );
        access.put(
            "rolebindings",
            &json!({"metadata": {"namespace": "a", "name": "b"},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "joe"}]}),
        );
        let joe = User::authenticated("joe", []);
        let many = |letter: &str| (0..1000).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
        let rule = Rule { verbs: many("v"), api_groups: many("g"), resources: many("r"), ..Rule::default() };
        assert_eq!(access.uncovered(&joe, "a", &[rule]), Err(Escalation::TooMany));
        let held = Rule {
            verbs: vec!["get".to_owned()],
            api_groups: vec![String::new()],
            resources: vec!["pods".to_owned()],
            ..Rule::default()
        };
        assert_eq!(access.uncovered(&joe, "a", &[held]), Ok(()));
    }
}
