//! `Table`s: what `kubectl get` prints, made by the server.
//!
//! ```text
//!   kind ──▶ TableConvertor ──▶ columnDefinitions
//!   object, now ────▶ cells
//! ```

mod age;
mod builtin;
mod jsonpath;

pub use age::human;
pub use jsonpath::{JsonPath, Malformed};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

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
pub struct TableConvertor {
    columns: Vec<Value>,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    Builtin(builtin::Row),
    /// Name and creation time: kinds without columns of their own.
    Plain,
    Custom(Vec<CustomColumn>),
}

#[derive(Clone, Debug)]
struct CustomColumn {
    kind: String,
    path: Option<JsonPath>,
}

impl TableConvertor {
    /// For a built-in kind; a kind with no columns of its own gets its name and when it was created.
    #[must_use]
    pub fn builtin(group: &str, _version: &str, kind: &str) -> Self {
        match builtin::of(group, kind) {
            Some((columns, row)) => {
                Self { columns: builtin::definitions(columns), cells: Cells::Builtin(row) }
            }
            None => Self { columns: builtin::definitions("Name/n,Created At/d"), cells: Cells::Plain },
        }
    }

    /// For a CRD's version, with its `additionalPrinterColumns`; with none of them it is name and age.
    #[must_use]
    pub fn custom(columns: Option<&[Value]>) -> Self {
        let age = [json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})];
        let listed = columns.filter(|columns| !columns.is_empty()).unwrap_or(&age);
        let mut definitions = builtin::definitions("Name/n");
        let mut cells = Vec::new();
        for column in listed {
            let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default();
            let (path, description) = (text("jsonPath"), text("description"));
            let description = if description.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {path}")
            } else {
                description.to_owned()
            };
            definitions.push(json!({
                "name": text("name"), "type": text("type"), "format": text("format"), "description": description,
                "priority": column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            }));
            cells.push(CustomColumn { kind: text("type").to_owned(), path: JsonPath::parse(path).ok() });
        }
        Self { columns: definitions, cells: Cells::Custom(cells) }
    }

    /// The `columnDefinitions`.
    #[must_use]
    pub fn columns(&self) -> &[Value] {
        &self.columns
    }

    /// The `cells` of one object's row.
    #[must_use]
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| "".into());
        match &self.cells {
            Cells::Builtin(row) => row(&builtin::Object::new(object, now)),
            Cells::Plain => {
                vec![name, object.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default()]
            }
            Cells::Custom(columns) => {
                std::iter::once(name).chain(columns.iter().map(|column| column.cell(object, now))).collect()
            }
        }
    }

    /// One row.
    #[must_use]
    pub fn row(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let shown = match include {
            Include::None => Value::Null,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.get("metadata"),
            }),
            Include::Object => object.clone(),
        };
        let mut row = Map::new();
        row.insert("cells".to_owned(), self.cells(object, now).into());
        if let Some(conditions) = self.conditions(object) {
            row.insert("conditions".to_owned(), conditions);
        }
        row.insert("object".to_owned(), shown);
        Value::Object(row)
    }

    /// Pods that ended are marked, so that clients can leave them out.
    fn conditions(&self, object: &Value) -> Option<Value> {
        if !matches!(self.cells, Cells::Builtin(_))
            || object.get("kind").and_then(Value::as_str) != Some("Pod")
        {
            return None;
        }
        let (reason, message) = match object.pointer("/status/phase").and_then(Value::as_str)? {
            "Succeeded" => ("Succeeded", "The pod has completed successfully."),
            "Failed" => ("Failed", "The pod failed."),
            _ => return None,
        };
        Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
    }

    /// A whole Table; `metadata` is that of the list, or of the one object.
    #[must_use]
    pub fn table(&self, metadata: &Value, objects: &[&Value], include: Include, now: Timestamp) -> Value {
        let rows: Vec<Value> = objects.iter().map(|object| self.row(object, include, now)).collect();
        let keep = ["resourceVersion", "continue", "remainingItemCount"];
        let kept = keep.iter().filter_map(|field| Some(((*field).to_owned(), metadata.get(field)?.clone())));
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": kept.collect::<Map<_, _>>(),
            "columnDefinitions": self.columns, "rows": rows,
        })
    }
}

impl CustomColumn {
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object).into_iter().next());
        let Some(value) = found else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("string", Value::String(_)) => value.clone(),
            ("string", other) => printed(other).into(),
            #[expect(clippy::cast_possible_truncation, reason = "cut as the server cuts it")]
            ("integer", Value::Number(number)) => {
                number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)).into()
            }
            ("number", Value::Number(number)) => number.as_f64().into(),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(text)) => match text.parse::<Timestamp>() {
                Ok(then) => human(then, now).into(),
                Err(_) => "<invalid>".into(),
            },
            _ => Value::Null,
        }
    }
}

/// A value as text: numbers as Go prints them, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => crate::invalid::go_number(number),
        other => crate::invalid::go_json(other),
    }
}
