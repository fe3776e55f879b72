//! What a kind does to its objects when they are written: defaults, what a client may not set, generations, special rules.
//!
//! Pure: an object in, an object out.

mod defaults;
mod definition;
mod field;
mod pod;
mod records;
mod secret;
mod service;
mod workload;

pub(crate) use field::{at, at_mut, has_condition, is_going, strings, take_out};
pub(crate) use service::{is_headless, needs_address, needs_node_ports};

use crate::resources::resource::{Resource, Subresource};
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::meta::{self, NameRule};
use serde_json::{Value, json};

/// What holds for the objects of a kind, whatever is in them.
#[derive(Clone, Debug)]
pub(crate) struct KindRules {
    pub(crate) generation: Generation,
    /// A PUT without a resourceVersion overwrites whatever is there.
    pub(crate) unconditional_update: bool,
    /// A PUT of what is not there makes it.
    pub(crate) create_on_update: bool,
    /// A deletion answers with the object, not with a Status.
    pub(crate) shows_deleted: bool,
    pub(crate) orphans: Orphans,
    pub(crate) name: NameRule,
    pub(crate) special: Special,
    /// Loopback addresses are good enough for endpoints.
    pub(crate) loopback: bool,
    /// Fields that a write to the object, or to its status, does not touch.
    pub(crate) resets: Vec<String>,
    pub(crate) status_resets: Vec<String>,
}

impl Default for KindRules {
    fn default() -> Self {
        Self {
            generation: Generation::Never,
            unconditional_update: true,
            create_on_update: false,
            shows_deleted: false,
            orphans: Orphans::No,
            name: NameRule::Subdomain,
            special: Special::None,
            loopback: false,
            resets: Vec::new(),
            status_resets: Vec::new(),
        }
    }
}

/// What makes the generation go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// It has none.
    Never,
    /// It is one for ever.
    Once,
    /// A change of the spec.
    Spec,
    /// A change of the spec or of annotations.
    SpecOrAnnotations,
    /// A change of the template.
    Template,
    /// A change of anything but the metadata.
    Content,
    /// The same, or of labels.
    ContentOrLabels,
}

/// What happens to owned objects when a deletion does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orphans {
    /// They are deleted.
    No,
    /// They stay.
    ByDefault,
    /// A client may not ask for either.
    Unsupported,
}

/// Kinds with rules of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    ConfigMap,
    Definition,
    Event,
    Job,
    Namespace,
    Pod,
    Policy,
    Rbac,
    Secret,
    Service,
}

/// Gives an object of a built-in kind its default values.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    if resource.custom.is_none() {
        defaults::apply(&resource.group, &resource.names.kind, object);
    }
}

/// Makes a new object ready: what only the server may set is set or removed.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    // A node registers itself, and brings its status.
    let brings_status = resource.group.is_empty() && resource.names.kind == "Node";
    if resource.has_status() && !brings_status {
        remove(object, "status");
    }
    match resource.rules.generation {
        Generation::Never => {}
        _ => object["metadata"]["generation"] = 1.into(),
    }
    match resource.rules.special {
        Special::Namespace => {
            object["status"] = json!({"phase": "Active"});
            let finalizers = &mut object["spec"]["finalizers"];
            if !strings(finalizers).any(|name| name == "kubernetes") {
                match finalizers.as_array_mut() {
                    Some(list) => list.push("kubernetes".into()),
                    None => *finalizers = json!(["kubernetes"]),
                }
            }
        }
        Special::Pod => pod::prepare_create(object),
        Special::Definition => definition::prepare_create(object),
        Special::Service => object["status"] = json!({"loadBalancer": {}}),
        Special::Job => workload::select_own_pods(object),
        Special::None
        | Special::ConfigMap
        | Special::Event
        | Special::Policy
        | Special::Rbac
        | Special::Secret => {}
    }
    if object["kind"] == "PersistentVolumeClaim" || object["kind"] == "PersistentVolume" {
        object["status"] = json!({"phase": "Pending"});
    }
}

/// Makes a changed object ready: what this way of writing may not touch comes from the old one.
pub(crate) fn prepare_update(resource: &Resource, by: Option<&Subresource>, new: &mut Value, old: &Value) {
    let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
    match old["metadata"].get("generation") {
        Some(kept) => new["metadata"]["generation"] = kept.clone(),
        None => remove(&mut new["metadata"], "generation"),
    }
    match by {
        Some(Subresource::Status) => {
            prepare_status(resource, new, old);
            return;
        }
        Some(Subresource::Finalize) => {
            let finalizers = new["spec"].get("finalizers").cloned();
            for field in ["spec", "status"] {
                keep(new, old, field);
            }
            match finalizers {
                Some(finalizers) => new["spec"]["finalizers"] = finalizers,
                None => remove(&mut new["spec"], "finalizers"),
            }
            return;
        }
        _ => {}
    }
    if resource.has_status() {
        keep(new, old, "status");
    }
    match resource.rules.special {
        Special::Namespace => keep(new, old, "spec"),
        Special::Secret => {
            if new["type"].as_str().unwrap_or_default().is_empty() {
                keep(new, old, "type");
            }
        }
        Special::Service => service::keep_unsaid(new, old),
        Special::Definition => definition::prepare_update(new),
        Special::None
        | Special::ConfigMap
        | Special::Event
        | Special::Job
        | Special::Pod
        | Special::Policy
        | Special::Rbac => {}
    }
    if changed(resource.rules.generation, new, old) {
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// A write to the status changes nothing else.
fn prepare_status(resource: &Resource, new: &mut Value, old: &Value) {
    if resource.custom.is_some() {
        let managed = new["metadata"].get("managedFields").cloned();
        let status = new.get("status").cloned();
        let version = new["apiVersion"].take();
        *new = old.clone();
        new["apiVersion"] = version;
        match status {
            Some(status) => new["status"] = status,
            None => remove(new, "status"),
        }
        match managed {
            Some(managed) => new["metadata"]["managedFields"] = managed,
            None => remove(&mut new["metadata"], "managedFields"),
        }
        return;
    }
    for path in &resource.rules.status_resets {
        match path.split_once('.') {
            None if path == "metadata" => {
                let managed = new["metadata"].get("managedFields").cloned();
                keep(new, old, "metadata");
                if let Some(managed) = managed {
                    new["metadata"]["managedFields"] = managed;
                }
            }
            None => keep(new, old, path),
            Some(("metadata", field)) => {
                let kept = old["metadata"].clone();
                keep(&mut new["metadata"], &kept, field);
            }
            Some(_) => {}
        }
    }
    keep(new, old, "spec");
}

fn changed(generation: Generation, new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let fields = object.as_object().cloned().unwrap_or_default();
        fields
            .into_iter()
            .filter(|(key, _)| !matches!(key.as_str(), "metadata" | "apiVersion" | "kind"))
            .collect::<Vec<_>>()
    };
    let differs = |field: &str| new.get(field) != old.get(field);
    let meta_differs = |field: &str| new["metadata"].get(field) != old["metadata"].get(field);
    match generation {
        Generation::Never | Generation::Once => false,
        Generation::Spec => differs("spec"),
        Generation::SpecOrAnnotations => differs("spec") || meta_differs("annotations"),
        Generation::Template => differs("template"),
        Generation::Content => rest(new) != rest(old),
        Generation::ContentOrLabels => rest(new) != rest(old) || meta_differs("labels"),
    }
}

/// What the kind has against a new object, besides its schema.
pub(crate) fn validate_create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = special(resource, object, None);
    let mut metadata = meta::validate_named(&object["metadata"], resource.namespaced, resource.rules.name);
    metadata.extend(finalizers(resource, object));
    for error in metadata {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

/// Groups whose objects may have finalizers without a domain, as custom ones may.
const PLAIN_FINALIZERS: [&str; 3] =
    ["apiextensions.k8s.io", "admissionregistration.k8s.io", "coordination.k8s.io"];

fn finalizers(resource: &Resource, object: &Value) -> Vec<FieldError> {
    if resource.custom.is_some() || PLAIN_FINALIZERS.contains(&resource.group.as_str()) {
        return Vec::new();
    }
    meta::builtin_finalizers(&object["metadata"])
}

/// What the kind has against a change, besides its schema.
pub(crate) fn validate_update(
    resource: &Resource,
    by: Option<&Subresource>,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = meta::validate_update(&new["metadata"], &old["metadata"]);
    errors.extend(finalizers(resource, new));
    if by.is_none() {
        errors.extend(special(resource, new, Some(old)));
    }
    errors
}

fn special(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match resource.rules.special {
        Special::ConfigMap => secret::validate_config_map(object, old),
        Special::Secret => secret::validate(object, old),
        Special::Definition => definition::validate(object, old),
        Special::Service => service::validate(object, old),
        Special::Rbac => records::rbac(object, old, resource.namespaced),
        Special::Policy => records::policy(object),
        Special::Event => records::event(&resource.group, object, old),
        Special::Job | Special::Pod => workload::validate(&resource.names.kind, object, old),
        Special::Namespace => Vec::new(),
        Special::None => plain(resource, object, old),
    }
}

/// Kinds with a few rules and no rules of their own.
fn plain(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match (resource.group.as_str(), resource.names.kind.as_str()) {
        ("apps" | "batch", kind) | ("", kind @ "ReplicationController") => {
            workload::validate(kind, object, old)
        }
        ("coordination.k8s.io", "Lease") => records::lease(object),
        ("discovery.k8s.io", "EndpointSlice") => {
            records::endpoint_slice(object, old, resource.rules.loopback)
        }
        ("scheduling.k8s.io", "PriorityClass") => records::priority_class(object, old),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            records::policy_binding(object)
        }
        _ => Vec::new(),
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(kept) => new[field] = kept.clone(),
        None => remove(new, field),
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
