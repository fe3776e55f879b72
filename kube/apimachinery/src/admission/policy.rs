//! A policy, compiled: every expression once.

use super::{Request, matching};
use crate::cel::{self, Expression};
use crate::invalid::FieldError;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most expressions of one policy: far more than anyone writes. Each is compiled, for about a tenth of a millisecond.
const EXPRESSIONS_MOST: usize = 1000;

/// A policy, compiled.
#[derive(Debug)]
pub struct Policy {
    pub(super) name: String,
    pub(super) constraints: Value,
    /// Does a failing expression refuse the request?
    pub(super) fails_closed: bool,
    pub(super) has_params: bool,
    pub(super) conditions: Vec<Source>,
    pub(super) variables: Vec<(String, Source)>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<(String, Source)>,
    dear: AtomicBool,
}

/// An expression with its text.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) expression: Expression,
}

#[derive(Debug)]
pub(super) struct Validation {
    pub(super) source: Source,
    pub(super) message: String,
    pub(super) message_source: Option<Source>,
    pub(super) reason: String,
}

impl Policy {
    /// Compiles a policy object.
    ///
    /// # Errors
    /// What is wrong with its expressions.
    pub fn compile(policy: &Value) -> Result<Self, Vec<FieldError>> {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let lists = ["matchConditions", "variables", "validations", "auditAnnotations"];
        if lists.iter().map(|list| listed(spec, list).count()).sum::<usize>() > EXPRESSIONS_MOST {
            let detail = format!("must have at most {EXPRESSIONS_MOST} expressions");
            return Err(vec![FieldError::invalid("spec", "", detail)]);
        }
        let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let mut errors = Vec::new();
        let mut known = vec!["object", "oldObject", "request"];
        if has_params {
            known.push("params");
        }
        let conditions = listed(spec, "matchConditions").enumerate();
        let conditions: Vec<Source> = conditions
            .filter_map(|(at, condition)| {
                let path = format!("spec.matchConditions[{at}].expression");
                source(condition, "expression", &path, &known, &mut errors)
            })
            .collect();
        known.extend(["namespaceObject", "variables"]);
        let variables = listed(spec, "variables").enumerate();
        let variables: Vec<(String, Source)> = variables
            .filter_map(|(at, variable)| {
                let path = format!("spec.variables[{at}].expression");
                Some((
                    text(variable, "name").to_owned(),
                    source(variable, "expression", &path, &known, &mut errors)?,
                ))
            })
            .collect();
        let validations = listed(spec, "validations").enumerate();
        let validations: Vec<Validation> = validations
            .filter_map(|(at, validation)| {
                let path = format!("spec.validations[{at}]");
                let message_source = (!text(validation, "messageExpression").is_empty()).then(|| {
                    let path = format!("{path}.messageExpression");
                    source(validation, "messageExpression", &path, &known, &mut errors)
                });
                let source =
                    source(validation, "expression", &format!("{path}.expression"), &known, &mut errors)?;
                let reason = match text(validation, "reason") {
                    "" => "Invalid",
                    reason => reason,
                };
                Some(Validation {
                    source,
                    message: text(validation, "message").trim().to_owned(),
                    message_source: message_source.flatten(),
                    reason: reason.to_owned(),
                })
            })
            .collect();
        let annotations = listed(spec, "auditAnnotations").enumerate();
        let annotations: Vec<(String, Source)> = annotations
            .filter_map(|(at, annotation)| {
                let path = format!("spec.auditAnnotations[{at}].valueExpression");
                let source = source(annotation, "valueExpression", &path, &known, &mut errors)?;
                Some((text(annotation, "key").to_owned(), source))
            })
            .collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        let named = variables.iter().chain(&annotations).map(|(_, source)| source);
        let sources = conditions.iter().chain(validations.iter().map(|validation| &validation.source));
        let dear = AtomicBool::new(sources.chain(named).any(|source| source.expression.is_dear()));
        Ok(Self {
            dear,
            name: policy.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            constraints: spec.get("matchConstraints").cloned().unwrap_or_default(),
            fails_closed: text(spec, "failurePolicy") != "Ignore",
            has_params,
            conditions,
            variables,
            validations,
            annotations,
        })
    }

    /// The policy's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Is it worth a thread of its own even where the object is small? Either it looks so, or it once was.
    #[must_use]
    pub fn is_dear(&self) -> bool {
        self.dear.load(Ordering::Relaxed)
    }

    /// Remembers what it cost.
    pub(super) fn note(&self, cost: u64) {
        if cost > cel::DEAR {
            self.dear.store(true, Ordering::Relaxed);
        }
    }

    /// Does it speak about this request at all? Decide before fetching parameters.
    #[must_use]
    pub fn matches(&self, request: &Request<'_>) -> bool {
        matching::matches(&self.constraints, request)
    }

    /// Whether it may speak of a resource at all: if not, no request about one has to be shown to it.
    pub fn concerns(&self, group: &str, plural: &str) -> bool {
        matching::concerns(&self.constraints, group, plural)
    }
}

fn source(
    holder: &Value,
    field: &str,
    path: &str,
    known: &[&str],
    errors: &mut Vec<FieldError>,
) -> Option<Source> {
    let written = text(holder, field);
    if written.trim().is_empty() {
        errors.push(FieldError::required(path, format!("{field} is not specified")));
        return None;
    }
    let compiled = Expression::compile(written).and_then(|expression| {
        cel::check_names(&expression, written, known)?;
        Ok(expression)
    });
    match compiled {
        Ok(expression) => Some(Source { text: written.to_owned(), expression }),
        Err(why) => {
            errors.push(FieldError::invalid(path, written, format!("compilation failed: {why}")));
            None
        }
    }
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn listed<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
