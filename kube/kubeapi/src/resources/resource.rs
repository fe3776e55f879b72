//! A resource as it is served: its names, its schema, and the rules that its kind has.

use crate::aggregated::Answerer;
use crate::http::encode::TypePrefix;
use crate::http::status_error::Subject;
use crate::resources::strategy::KindRules;
use crate::storage::store::Key;
use atoll_apimachinery::builtin;
use atoll_apimachinery::schema::{Kind, Rules, Schema};
use bytes::Bytes;
use serde_json::Value;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use tokio::sync::watch;

/// One resource of one version of a group.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) names: Names,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) schema: SchemaRef,
    pub(crate) rules: KindRules,
    pub(crate) subresources: Vec<Subresource>,
    /// Under which group and plural its objects are kept.
    pub(crate) stored: Stored,
    /// What only custom resources have.
    pub(crate) custom: Option<Custom>,
    /// Who answers for it, if its objects are not stored.
    pub(crate) aggregated: Option<Answerer>,
    /// Becomes true when this description is replaced by another: watches end then.
    pub(crate) retired: watch::Sender<bool>,
    prefix: TypePrefix,
}

/// What a resource is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// Where objects are kept, and which version they say that they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) version: String,
}

/// A schema that is compiled in, or one that a CRD brought.
#[derive(Clone, Debug)]
pub(crate) enum SchemaRef {
    /// Made of the facts when it is first needed: most kinds are never used.
    BuiltIn(Arc<LazyLock<&'static Schema, MakeSchema>>),
    /// Read from the CRD when it is first needed: a schema is many times as large as its text.
    Custom(Arc<Lazy<Schema>>),
}

type MakeSchema = Box<dyn FnOnce() -> &'static Schema + Send + Sync>;

/// Made when it is first needed.
pub(crate) type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send + Sync>>;

/// Objects of a kind without a schema keep all their fields.
static ANYTHING: LazyLock<Schema> =
    LazyLock::new(|| Schema { kind: Kind::Object, preserve_unknown: true, ..Schema::default() });

impl SchemaRef {
    /// The schema of a kind of Kubernetes' own.
    pub(crate) fn built_in(group: &str, version: &str, kind: &str) -> Self {
        let [group, version, kind] = [group, version, kind].map(str::to_owned);
        let make = move || builtin::schema(&group, &version, &kind).unwrap_or(&ANYTHING);
        Self::BuiltIn(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// A schema that is made when it is needed.
    pub(crate) fn custom(make: impl FnOnce() -> Schema + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl Deref for SchemaRef {
    type Target = Schema;
    fn deref(&self) -> &Schema {
        match self {
            Self::BuiltIn(schema) => schema,
            Self::Custom(schema) => schema,
        }
    }
}

/// What is served below an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    Status,
    Scale(Scale),
    /// A namespace's finalizers.
    Finalize,
    /// A service account's tokens.
    Token,
    /// What a pod wrote.
    Log,
    /// A command in a pod.
    Exec,
    /// A way to the program that a pod runs.
    Attach,
}

/// Where an object keeps its number of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// As dotted paths without the first dot: `spec.replicas`.
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

impl Subresource {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale(_) => "scale",
            Self::Finalize => "finalize",
            Self::Token => "token",
            Self::Log => "log",
            Self::Exec => "exec",
            Self::Attach => "attach",
        }
    }
}

/// What only custom resources have.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Field paths that a field selector may name, without the first dot.
    pub(crate) selectable: Vec<String>,
    /// `additionalPrinterColumns`, as in the CRD.
    pub(crate) columns: Value,
    /// The warning that clients of this version get.
    pub(crate) deprecation: Option<String>,
    /// Whether the CRD is on its way out: nothing new then.
    pub(crate) terminating: bool,
    /// Objects written before this revision may lack defaults or have fields that the schema has no longer.
    pub(crate) since: u64,
    /// The schema as the CRD has it, for `/openapi`: its text.
    pub(crate) document: Bytes,
    /// The schema of the version that objects are kept in.
    pub(crate) stored_schema: SchemaRef,
    /// The schema's rules in CEL.
    pub(crate) rules: Lazy<Rules>,
}

/// The verbs of most resources, in the order of discovery.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Resource {
    #[allow(clippy::too_many_arguments, reason = "each is a field")]
    pub(crate) fn new(
        group: &str,
        version: &str,
        names: Names,
        namespaced: bool,
        schema: SchemaRef,
        rules: KindRules,
        subresources: Vec<Subresource>,
        stored: Stored,
    ) -> Self {
        let prefix = TypePrefix::named(&api_version(group, version), &names.kind);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            names,
            namespaced,
            verbs: ALL_VERBS,
            schema,
            rules,
            subresources,
            stored,
            custom: None,
            aggregated: None,
            retired: watch::channel(false).0,
            prefix,
        }
    }

    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// For errors that speak of the resource.
    pub(crate) fn plural(&self) -> Subject<'_> {
        Subject { group: &self.group, name: &self.names.plural }
    }

    /// For errors that speak of the kind.
    pub(crate) fn kind(&self) -> Subject<'_> {
        Subject { group: &self.group, name: &self.names.kind }
    }

    /// What the keys of its objects begin with, in one namespace or in all.
    pub(crate) fn prefix(&self, namespace: &str) -> String {
        let Stored { group, plural, .. } = &self.stored;
        if namespace.is_empty() && self.namespaced {
            return Key::resource_prefix(group, plural);
        }
        Key::namespace_prefix(group, plural, namespace)
    }

    /// The key of an object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Key {
        let namespace = if self.namespaced { namespace } else { "" };
        Key::new(&self.stored.group, &self.stored.plural, namespace, name)
    }

    /// How stored bytes become an object of this version.
    pub(crate) fn type_prefix(&self) -> &TypePrefix {
        &self.prefix
    }

    /// The subresource of that name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name() == name)
    }

    /// Has it a status that only its subresource may write?
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Is it this one: `("", "services")`?
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.names.plural == plural
    }
}

/// `v1` or `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Group and version of an `apiVersion`.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
