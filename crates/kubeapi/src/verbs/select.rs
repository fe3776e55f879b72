//! Which objects a list or a watch is about.

use super::Ask;
use crate::encode::Glance;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::strategy;
use crate::{encode, view};
use apimachinery::selector::{fields, labels};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;

/// The selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: labels::Selector,
    fields: fields::Selector,
}

impl Selection {
    /// Reads them; a field that this resource can't be selected by is refused.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let labels =
            labels::Selector::parse(labels).map_err(|error| Refusal::bad_request(error.to_string()))?;
        let fields =
            fields::Selector::parse(fields).map_err(|error| Refusal::bad_request(error.to_string()))?;
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
                return Err(Refusal::bad_request(why));
            }
        }
        Ok(Self { labels, fields })
    }

    /// Everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Is an object with these bytes selected?
    pub(crate) fn matches(&self, resource: &Resource, body: &Bytes) -> bool {
        if self.is_empty() {
            return true;
        }
        let by_name = |field: &str| matches!(field, "metadata.name" | "metadata.namespace");
        if self.fields.terms.iter().all(|term| by_name(&term.field)) {
            let glance = Glance::of(body);
            let labels: BTreeMap<String, String> = glance
                .metadata
                .labels
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect();
            let field = |field: &str| match field {
                "metadata.name" => Some(glance.metadata.name.to_string()),
                _ => Some(glance.metadata.namespace.to_string()),
            };
            return self.labels.matches(&labels) && self.fields.matches(field);
        }
        self.matches_value(resource, &encode::read(body))
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
fn value_of(resource: &Resource, stored: &Value, field: &str) -> Option<String> {
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
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Bool(flag)) => Some(flag.to_string()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => match field {
            "spec.unschedulable" | "spec.hostNetwork" => Some("false".to_owned()),
            "status.replicas" | "status.successful" => Some("0".to_owned()),
            _ => None,
        },
    }
}

impl Ask<'_> {
    /// Is a stored object selected? Objects from before a schema's change are looked at as they are shown.
    pub(super) fn selects(&self, selection: &Selection, revision: u64, body: &Bytes) -> bool {
        selects(&self.resource, selection, revision, body)
    }
}

/// Is a stored object selected?
pub(super) fn selects(resource: &Resource, selection: &Selection, revision: u64, body: &Bytes) -> bool {
    if !selection.is_empty() && resource.custom.is_some() && view::needs_reading(resource, revision) {
        return selection.matches(resource, &view::shown_bytes(resource, revision, body));
    }
    selection.matches(resource, body)
}
