//! Rules in CEL: compiled once per schema, asked for every write.

mod node;

use super::Schema;
use crate::cel;
use crate::invalid::FieldError;
use node::Node;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rules of one schema, compiled. Keep it next to the schema.
#[derive(Debug, Default)]
pub struct Rules {
    root: Node,
    dear: AtomicBool,
}

impl Rules {
    /// Compiles all rules of a schema. A rule that does not compile fails whenever it is asked.
    #[must_use]
    pub fn compile(schema: &Schema) -> Self {
        let root = Node::compile(schema);
        Self { dear: AtomicBool::new(root.is_dear()), root }
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
        let mut found = node::Findings::default();
        self.root.check(value, old, schema, &node::ValueLocation::root(value, old, schema), &mut found);
        if found.cost() > cel::DEAR {
            self.dear.store(true, Ordering::Relaxed);
        }
        found.errors
    }

    /// Are they worth a thread of their own even where the object is small? Either they look so, or they once were.
    #[must_use]
    pub fn are_dear(&self) -> bool {
        self.dear.load(Ordering::Relaxed)
    }
}

/// Compiles and asks at once; for tests and for what happens once.
#[must_use]
pub fn rules(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    Rules::compile(schema).check(value, old, schema)
}
