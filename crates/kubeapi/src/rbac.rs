//! May this user do that? Roles and bindings in, an answer with its reason out. Pure.

use crate::authn::User;
use serde_json::Value;

/// What somebody wants to do.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// `get`, `list`, `create`…; for a path, the HTTP method in lower case.
    pub verb: &'a str,
    /// To what.
    pub target: Target<'a>,
}

/// What somebody wants to do it to.
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
        /// Which binding of which role to whom.
        reason: String,
    },
    /// Nothing says so, which means no.
    NoOpinion {
        /// Empty, or roles that bindings name and that can't be found.
        reason: String,
    },
}

/// Roles and bindings as the store has them.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {}

impl Authorizer {
    /// Knows an object of `rbac.authorization.k8s.io/v1` from now on, in place of what it was before. Others are ignored.
    pub fn put(&mut self, resource: &str, object: &Value) {
        let _ = (resource, object);
    }

    /// Forgets an object of `rbac.authorization.k8s.io/v1`.
    pub fn remove(&mut self, resource: &str, namespace: &str, name: &str) {
        let _ = (resource, namespace, name);
    }

    /// May they?
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.groups.iter().any(|group| group == crate::authn::MASTERS) {
            return Decision::Allow { reason: String::new() };
        }
        Decision::NoOpinion { reason: String::new() }
    }
}
