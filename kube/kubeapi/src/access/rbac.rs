//! May this user do that? Roles and bindings in, an answer with its reason out. Pure.
//!
//! ```text
//!   user ──▶ bindings that name the user or a group ──▶ their roles' rules ──▶ one that allows, or none
//! ```
//!
//! Nothing denies: what no rule allows is refused. [`Authorizer`] holds what the store has; [`defaults`] is what a new
//! store starts with; [`Authorizer::uncovered`] is the fence against giving others more than one has.

mod aggregate;
mod cover;
pub mod defaults;
mod rule;

pub use cover::Escalation;
pub use rule::Rule;

use crate::access::authn::User;
use aggregate::Gather;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// What a user wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// `get`, `list`, `create`…; for a path, the HTTP method in lower case.
    pub verb: &'a str,
    /// To what.
    pub target: Target<'a>,
}

/// What the user wants to do it to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// An object, or a collection of them.
    Resource {
        /// The API group, empty for the core group.
        group: &'a str,
        /// The resource, in the plural.
        resource: &'a str,
        /// The subresource, empty for the object itself.
        subresource: &'a str,
        /// The namespace, empty for all or none.
        namespace: &'a str,
        /// The name, empty for a collection.
        name: &'a str,
    },
    /// A path that is no resource's.
    Path(&'a str),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow {
        /// Which binding of which role to whom; empty for `system:masters`, who need none.
        reason: String,
    },
    /// Nothing says so, which means no.
    NoOpinion {
        /// Empty, or roles that bindings name and that can't be found.
        reason: String,
    },
}

impl Decision {
    /// Is it yes?
    pub fn allows(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// What an error tells the user, to be put after `<resource> "<name>" is forbidden: `.
pub fn denial(attributes: &Attributes<'_>, reason: &str) -> String {
    let user = &attributes.user.name;
    let verb = attributes.verb;
    let message = match attributes.target {
        Target::Path(path) => format!("User {user:?} cannot {verb} path {path:?}"),
        Target::Resource { group, resource, subresource, namespace, .. } => {
            let resource = combined(resource, subresource);
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
        }
    };
    // Names come from clients: a browser mustn't take them for markup.
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if reason.is_empty() { message } else { format!("{message}: {reason}") }
}

fn combined(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") }
}

/// Roles and bindings as the store has them. A clone shares them, and costs little.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    /// By namespace and name; cluster roles have the namespace "".
    roles: BTreeMap<String, BTreeMap<String, Arc<Role>>>,
    bindings: BTreeMap<String, BTreeMap<String, Arc<Binding>>>,
    /// The rules of aggregated roles, computed when they are first needed.
    gathered: OnceLock<BTreeMap<String, Vec<Rule>>>,
}

#[derive(Debug, Clone, Default)]
struct Role {
    rules: Vec<Rule>,
    labels: BTreeMap<String, String>,
    gathers: Option<Vec<Gather>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Binding {
    role_ref: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Authorizer {
    /// Knows a role or binding from now on, in place of what it was before. `resource` is its resource's name
    /// (`roles`, `clusterrolebindings`…); other resources are ignored. The object has passed validation.
    pub fn put(&mut self, resource: &str, object: &Value) {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        match resource {
            "roles" | "clusterroles" => {
                self.forget_gathered(&namespace);
                self.roles.entry(namespace).or_default().insert(name, Arc::new(Role::read(object)));
            }
            "rolebindings" | "clusterrolebindings" => {
                let binding = Binding::deserialize(object).unwrap_or_default();
                self.bindings.entry(namespace).or_default().insert(name, Arc::new(binding));
            }
            _ => {}
        }
    }

    /// Forgets a role or binding; `namespace` is empty for those of the cluster.
    pub fn remove(&mut self, resource: &str, namespace: &str, name: &str) {
        match resource {
            "roles" | "clusterroles" => {
                self.forget_gathered(namespace);
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
            "rolebindings" | "clusterrolebindings" => {
                if let Some(bindings) = self.bindings.get_mut(namespace) {
                    bindings.remove(name);
                    if bindings.is_empty() {
                        self.bindings.remove(namespace);
                    }
                }
            }
            _ => {}
        }
    }

    /// Cluster roles gather cluster roles: those of a namespace change nothing in that.
    fn forget_gathered(&mut self, namespace: &str) {
        if namespace.is_empty() {
            self.gathered.take();
        }
    }

    /// May they?
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_master() {
            return Decision::Allow { reason: String::new() };
        }
        let namespace = match attributes.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        };
        let mut missing = Vec::new();
        for grant in self.grants(attributes.user, namespace) {
            match self.rules_of(&grant.binding.role_ref, grant.place) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision::Allow { reason: format!("RBAC: allowed by {}", grant.text()) };
                }
                Ok(_) => {}
                Err(error) => add(&mut missing, error),
            }
        }
        let reason = match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        };
        Decision::NoOpinion { reason }
    }

    /// Everything that `user` may do in `namespace` (or across the cluster, if empty), and the roles that bindings name
    /// and that can't be found.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        for grant in self.grants(user, namespace) {
            match self.rules_of(&grant.binding.role_ref, grant.place) {
                Ok(rules) => all.extend_from_slice(rules),
                Err(error) => add(&mut missing, error),
            }
        }
        (all, missing)
    }

    /// Bindings of the cluster, then of `namespace`, that `user` is a subject of.
    fn grants<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Grant<'a>> {
        let places = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        places.into_iter().flat_map(move |place| {
            self.bindings.get(place).into_iter().flatten().filter_map(move |(name, binding)| {
                let subject = binding.subjects.iter().find(|subject| subject.is(user, place))?;
                Some(Grant { place, name, binding, subject })
            })
        })
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[Rule], String> {
        let RoleRef { kind, name } = role;
        let (namespace, resource) = match kind.as_str() {
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            _ => return Err(format!("unsupported role reference kind: {kind:?}")),
        };
        match self.roles.get(namespace).and_then(|roles| roles.get(name)) {
            Some(role) if namespace.is_empty() && role.gathers.is_some() => {
                Ok(self.gathered().get(name).map_or(&[], Vec::as_slice))
            }
            Some(role) => Ok(&role.rules),
            None => Err(format!("{resource}.{GROUP} {name:?} not found")),
        }
    }
}

fn add(missing: &mut Vec<String>, error: String) {
    if !missing.contains(&error) {
        missing.push(error);
    }
}

/// A binding that applies, and the subject by which it does.
struct Grant<'a> {
    /// The binding's namespace, empty for the cluster's.
    place: &'a str,
    name: &'a str,
    binding: &'a Binding,
    subject: &'a Subject,
}

impl Grant<'_> {
    fn text(&self) -> String {
        let Self { place, name, binding, subject } = self;
        let RoleRef { kind, name: role } = &binding.role_ref;
        let binding = match *place {
            "" => format!("ClusterRoleBinding {name:?}"),
            place => format!("RoleBinding {:?}", format!("{name}/{place}")),
        };
        let to = match subject.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", subject.name, subject.home(place)),
            _ => subject.name.clone(),
        };
        format!("{binding} of {kind} {role:?} to {} {to:?}", subject.kind)
    }
}

impl Subject {
    fn is(&self, user: &User, place: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.groups.contains(&self.name),
            "ServiceAccount" => {
                let home = self.home(place);
                let account = user.name.strip_prefix("system:serviceaccount:");
                !home.is_empty()
                    && account.and_then(|account| account.split_once(':')) == Some((home, &self.name))
            }
            _ => false,
        }
    }

    /// An account without a namespace is of the binding's.
    fn home<'a>(&'a self, place: &'a str) -> &'a str {
        if self.namespace.is_empty() { place } else { &self.namespace }
    }
}

impl Role {
    fn read(object: &Value) -> Self {
        let part = |name: &str| object.get(name).filter(|part| !part.is_null());
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        Self {
            rules: part("rules").and_then(|rules| Vec::deserialize(rules).ok()).unwrap_or_default(),
            labels: labels
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            gathers: part("aggregationRule").map(Gather::read),
        }
    }
}
