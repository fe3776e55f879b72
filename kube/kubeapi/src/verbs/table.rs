//! Tables, and metadata without the rest: what `kubectl get` and metadata informers ask for.

use super::RequestContext;
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::Resource;
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::table::{Include, TableConvertor};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How a resource is printed.
pub(super) fn convertor(resource: &Resource) -> TableConvertor {
    match &resource.custom {
        Some(custom) => TableConvertor::custom(custom.columns.as_array().map(Vec::as_slice)),
        None => TableConvertor::builtin(&resource.group, &resource.version, &resource.names.kind),
    }
}

/// A Table of this version of `meta.k8s.io`.
pub(crate) fn table(
    convertor: &TableConvertor,
    version: &str,
    objects: &[&Value],
    of: &Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let mut metadata = json!({});
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = of["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut table = convertor.table(&metadata, objects, include, now);
    table["apiVersion"] = format!("meta.k8s.io/{version}").into();
    table
}

impl RequestContext<'_> {
    /// How much of the objects goes into the rows.
    pub(super) fn include(&self) -> Result<Include, StatusError> {
        match self.info.query.first("includeObject").unwrap_or_default() {
            "" | "Metadata" => Ok(Include::Metadata),
            "None" => Ok(Include::None),
            "Object" => Ok(Include::Object),
            other => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", other, why);
                Err(StatusError::invalid(
                    Subject { group: "meta.k8s.io", name: "TableOptions" },
                    "",
                    &[error],
                ))
            }
        }
    }

    /// A Table of objects; `of` is the list, or the one object.
    pub(super) fn table_of(&self, version: &str, objects: &[&Value], of: &Value) -> Value {
        let include = self.include().unwrap_or_default();
        table(&convertor(&self.resource), version, objects, of, include, self.state.environment.now())
    }
}

/// An object's metadata without the rest.
pub(crate) fn metadata_only(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object["metadata"],
    })
}
