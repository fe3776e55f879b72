//! A group of resources that other code answers for: served beside the stored ones, and not kept.
//!
//! ```text
//!   request ──▶ authn, impersonation, RBAC, audit, flow ──▶ aggregated::carry_out ──▶ Handler ──▶ JSON, YAML or a Table
//! ```
//!
//! On this API ([`Options::aggregated`](crate::Options::aggregated)) its calls pass what all requests pass, but for admission
//! policies: nothing is admitted, because nothing is stored. On another API server the same group is served by
//! [`crate::extension`]. Its documents (discovery, OpenAPI) are made by those of all resources.

pub(crate) mod answer;

use crate::access::authn::User;
use crate::resources::resource::{Names, Resource, SchemaRef, Stored};
use crate::resources::strategy::KindRules;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// One version of a group, and who answers for it.
#[derive(Clone)]
pub struct Group {
    /// The group.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What is in it.
    pub kinds: Vec<Kind>,
    /// Who answers.
    pub handler: Arc<dyn Handler>,
}

/// A resource of such a group.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What its objects are called.
    pub kind: String,
    /// The resource, in the plural.
    pub plural: String,
    /// Whether it is in namespaces.
    pub namespaced: bool,
    /// What can be done: of `get`, `list` and `create`. Whatever else is asked is refused.
    pub verbs: &'static [&'static str],
    /// Columns of `kubectl get` after the name: their heading, and a path in the manner of a CRD's printer columns.
    pub columns: Vec<(String, String)>,
}

/// A call that its user may make.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// For whom it is.
    pub user: User,
    /// `get`, `list` or `create`.
    pub verb: &'static str,
    /// The resource, in the plural.
    pub resource: String,
    /// The namespace; none for resources outside of namespaces, and for a list of all of them.
    pub namespace: Option<String>,
    /// The name, for `get`.
    pub name: Option<String>,
    /// The parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// The body, for `create`: an object of the kind.
    pub body: Option<Value>,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The object, the list, or a `Status` that says why there is none.
    pub body: Value,
}

/// A reply on its way.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;

/// Who answers for a group. Paths, verbs and rights have been checked, and a body is an object.
pub trait Handler: Send + Sync {
    /// Answers one call.
    fn answer(&self, call: Call) -> Replying<'_>;
}

/// A handler, as a resource has it.
#[derive(Clone)]
pub(crate) struct Answerer {
    pub(crate) handler: Arc<dyn Handler>,
    /// As a CRD has them.
    pub(crate) columns: Value,
}

impl std::fmt::Debug for Answerer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answerer").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = out.debug_struct("Group");
        shown.field("name", &self.name).field("version", &self.version).field("kinds", &self.kinds);
        shown.finish_non_exhaustive()
    }
}

impl Group {
    /// Its resources, as the registry has them.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Resource> {
        self.kinds.iter().map(|kind| {
            let names = Names {
                kind: kind.kind.clone(),
                list_kind: format!("{}List", kind.kind),
                plural: kind.plural.clone(),
                // Not the plural's: `kubectl get service` means those of the core group.
                singular: kind.kind.to_lowercase(),
                ..Names::default()
            };
            let stored = Stored {
                group: self.name.clone(),
                plural: kind.plural.clone(),
                version: self.version.clone(),
            };
            let columns = kind.columns.iter();
            let columns =
                columns.map(|(name, path)| json!({"name": name, "type": "string", "jsonPath": path}));
            let answerer = Answerer { handler: Arc::clone(&self.handler), columns: columns.collect() };
            let mut resource = Resource::new(
                &self.name,
                &self.version,
                names,
                kind.namespaced,
                SchemaRef::built_in(&self.name, &self.version, &kind.kind),
                KindRules::default(),
                Vec::new(),
                stored,
            );
            resource.verbs = kind.verbs;
            resource.aggregated = Some(answerer);
            resource
        })
    }
}
