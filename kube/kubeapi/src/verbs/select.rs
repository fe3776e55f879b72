//! Which objects a list or a watch is about.

use crate::http::encode;
use crate::http::encode::PartialObject;
use crate::http::status_error::StatusError;
use crate::resources::resource::Resource;
use crate::resources::strategy;
use crate::resources::view;
use crate::storage::store::{Key, Object};
use atoll_apimachinery::selector::{fields, labels};
use bytes::Bytes;
use serde_json::Value;
use std::borrow::Cow;

/// The selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: labels::Selector,
    fields: fields::Selector,
}

impl Selection {
    /// Reads them; a field that this resource can't be selected by is refused.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, StatusError> {
        let labels =
            labels::Selector::parse(labels).map_err(|error| StatusError::bad_request(error.to_string()))?;
        let fields =
            fields::Selector::parse(fields).map_err(|error| StatusError::bad_request(error.to_string()))?;
        for term in &fields.terms {
            if !selectable(resource, &term.field) {
                let kind = &resource.names.kind;
                let why = match &resource.custom {
                    Some(_) => format!("field label not supported: {}", term.field),
                    None if has_own_labels(resource) => {
                        format!("field label \"{}\" not supported for {:?}", term.field, kind)
                    }
                    None => format!(
                        "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        term.field
                    ),
                };
                return Err(StatusError::bad_request(why));
            }
        }
        Ok(Self { labels, fields })
    }

    /// Everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// What the keys of all selected objects begin with: those of a name are few.
    pub(super) fn prefix(&self, resource: &Resource, namespace: &str) -> String {
        let mut prefix = resource.prefix(namespace);
        if !(resource.namespaced && namespace.is_empty())
            && let Some(name) = self.fields.exactly("metadata.name")
        {
            prefix.push_str(name);
        }
        prefix
    }

    /// Is an object with this key and these bytes selected? The bytes are read only if the key does not tell.
    fn matches(&self, resource: &Resource, key: &Key, body: &Bytes) -> bool {
        if self.is_empty() {
            return true;
        }
        let of_key = |field: &str| match field {
            "metadata.name" => Some(Cow::Borrowed(key.name())),
            "metadata.namespace" => Some(Cow::Borrowed(key.namespace())),
            _ => None,
        };
        if self.fields.terms.iter().any(|term| of_key(&term.field).is_none()) {
            return self.matches_value(resource, &encode::read(body));
        }
        self.fields.matches(of_key) && (self.labels.is_empty() || self.matches_labels(body))
    }

    fn matches_labels(&self, body: &Bytes) -> bool {
        let labels = PartialObject::of(body).metadata.labels.unwrap_or_default();
        self.labels.matches_by(|key| labels.get(key).map(|value| &**value))
    }

    /// Is this object, as it is stored, selected?
    fn matches_value(&self, resource: &Resource, stored: &Value) -> bool {
        self.labels.matches_object(stored) && self.fields.matches(|field| value_of(resource, stored, field))
    }
}

/// Built-in kinds with selectable fields of their own, and those fields.
const FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "",
        "Pod",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    ("", "Node", &["spec.unschedulable"]),
    ("", "Namespace", &["status.phase", "name"]),
    ("", "Secret", &["type"]),
    ("", "Service", &["spec.clusterIP", "spec.type"]),
    ("", "ReplicationController", &["status.replicas"]),
    ("", "Event", EVENT),
    (
        "events.k8s.io",
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "reason",
            "reportingController",
            "type",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
        ],
    ),
    ("apps", "ReplicaSet", &["status.replicas"]),
    ("batch", "Job", &["status.successful"]),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &[]),
];

const EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

fn has_own_labels(resource: &Resource) -> bool {
    FIELDS.iter().any(|(group, kind, _)| *group == resource.group && *kind == resource.names.kind)
}

fn selectable(resource: &Resource, field: &str) -> bool {
    if field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced) {
        return true;
    }
    if let Some(custom) = &resource.custom {
        return custom.selectable.iter().any(|known| known == field);
    }
    // Clients ask cluster-wide kinds for a namespace too; nothing matches then.
    if field == "metadata.namespace" {
        return true;
    }
    FIELDS.iter().any(|(group, kind, fields)| {
        *group == resource.group && *kind == resource.names.kind && fields.contains(&field)
    })
}

/// The value of a selectable field of a stored object, as text.
fn value_of<'v>(resource: &Resource, stored: &'v Value, field: &str) -> Option<Cow<'v, str>> {
    let path = match (resource.names.kind.as_str(), field) {
        ("Namespace", "name") => "metadata.name",
        ("Event", "source") => "source.component",
        ("Event", "regarding.kind") => "involvedObject.kind",
        ("Event", "regarding.name") => "involvedObject.name",
        ("Event", "regarding.namespace") => "involvedObject.namespace",
        ("Event", "reportingController") => "reportingComponent",
        ("Job", "status.successful") => "status.succeeded",
        _ => field,
    };
    match strategy::at(stored, path) {
        Some(Value::String(text)) => Some(text.as_str().into()),
        Some(Value::Bool(flag)) => Some(flag.to_string().into()),
        Some(Value::Number(number)) => Some(number.to_string().into()),
        _ => match field {
            "spec.unschedulable" | "spec.hostNetwork" => Some("false".into()),
            "status.replicas" | "status.successful" => Some("0".into()),
            _ => None,
        },
    }
}

impl Selection {
    /// Is a stored object selected? Objects from before a schema's change are looked at as they are shown.
    pub(super) fn selects(&self, resource: &Resource, object: &Object, body: &Bytes) -> bool {
        let Object { key, revision, .. } = object;
        if !self.is_empty() && resource.custom.is_some() && view::needs_reading(resource, *revision) {
            return self.matches(resource, key, &view::shown_bytes(resource, *revision, body));
        }
        self.matches(resource, key, body)
    }
}
