//! Rules in CEL: compiled once per schema, asked for every write.

mod node;

use super::Schema;
use crate::invalid::FieldError;
use node::Node;
use serde_json::Value;

/// The rules of one schema, compiled. Keep it next to the schema.
#[derive(Debug, Default)]
pub struct Rules {
    root: Node,
}

impl Rules {
    /// Compiles all rules of a schema. A rule that does not compile fails whenever it is asked.
    #[must_use]
    pub fn compile(schema: &Schema) -> Self {
        Self { root: Node::compile(schema) }
    }

    /// Are there no rules at all?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// What the rules say against a value; transition rules compare it with `old`. What broke a rule before, and is
    /// unchanged, is tolerated.
    #[must_use]
    pub fn check(&self, value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.root.check(value, old, schema, &node::ValueLocation::root(value, old, schema), &mut errors);
        errors
    }
}

/// Compiles and asks at once; for tests and for what happens once.
#[must_use]
pub fn rules(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    Rules::compile(schema).check(value, old, schema)
}
