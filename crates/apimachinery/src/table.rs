//! `Table`s: what `kubectl get` prints, made by the server.

use jiff::Timestamp;
use serde_json::{Value, json};

/// How much of the object goes into each row (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// Prints the objects of one kind.
#[derive(Clone, Debug)]
pub struct Printer {
    columns: Vec<Value>,
}

impl Printer {
    /// For a built-in kind; a kind with no columns of its own gets name and age.
    #[must_use]
    pub fn builtin(_group: &str, _version: &str, _kind: &str) -> Self {
        Self::custom(None)
    }

    /// For a CRD's version, with its `additionalPrinterColumns`.
    #[must_use]
    pub fn custom(_columns: Option<&[Value]>) -> Self {
        Self { columns: Vec::new() }
    }

    /// The `columnDefinitions`.
    #[must_use]
    pub fn columns(&self) -> Vec<Value> {
        self.columns.clone()
    }

    /// The `cells` of one object's row.
    #[must_use]
    pub fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![object["metadata"]["name"].clone()]
    }

    /// One row.
    #[must_use]
    pub fn row(&self, object: &Value, _include: Include, now: Timestamp) -> Value {
        json!({"cells": self.cells(object, now), "object": object})
    }

    /// A whole Table; `metadata` is that of the list, or of the one object.
    #[must_use]
    pub fn table(&self, metadata: &Value, objects: &[&Value], include: Include, now: Timestamp) -> Value {
        let rows: Vec<Value> = objects.iter().map(|object| self.row(object, include, now)).collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": self.columns(), "rows": rows,
        })
    }
}
