//! The rules at one node of a schema, and below it.

use crate::cel::{self, Budget, Exceeded, Expression, Failure};
use crate::invalid::{FieldError, told};
use crate::schema::{Kind, Rule, Schema, correlate};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most bytes of a message that an expression made.
const MESSAGE_MOST: usize = 5 * 1024;

#[derive(Debug, Default)]
pub(super) struct Node {
    rules: Vec<Compiled>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    all_of: Vec<Node>,
}

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    expression: Result<Expression, String>,
    message: Option<Expression>,
    transition: bool,
}

/// Most letters of all that rules say against one object.
const SAID_MOST: usize = 256 << 10;

/// What the rules of one object found so far, and what they may still cost.
pub(super) struct Findings {
    pub(super) errors: Vec<FieldError>,
    budget: Budget,
    said: usize,
    /// A rule cost too much, or enough was said: no more are asked.
    ended: bool,
}

impl Default for Findings {
    fn default() -> Self {
        Self { errors: Vec::new(), budget: Budget::object(), said: 0, ended: false }
    }
}

impl Findings {
    fn say(&mut self, error: FieldError) {
        self.said += error.field.len() + error.detail.len();
        self.ended |= self.said > SAID_MOST;
        self.errors.push(error);
    }

    pub(super) fn cost(&self) -> u64 {
        self.budget.spent()
    }
}

/// Where a value stands, and whether it is known to be unchanged.
pub(super) struct ValueLocation<'a> {
    path: String,
    /// The value and its old one, where they can be told to belong together.
    pair: Option<(&'a Value, &'a Value, &'a Schema)>,
    /// The same of the nearest parent.
    parent: Option<(&'a Value, &'a Value, &'a Schema)>,
}

impl<'a> ValueLocation<'a> {
    pub(super) fn root(value: &'a Value, old: Option<&'a Value>, schema: &'a Schema) -> Self {
        Self { path: String::new(), pair: old.map(|old| (value, old, schema)), parent: None }
    }

    fn unchanged(&self) -> bool {
        let pair = self.pair.or(self.parent);
        pair.is_some_and(|(value, old, schema)| correlate::same(value, old, schema))
    }

    fn below(&self, path: String, pair: Option<(&'a Value, &'a Value, &'a Schema)>) -> Self {
        let path = told(path).into_owned();
        match self.pair {
            Some(own) => Self { path, pair, parent: Some(own) },
            None => Self { path, pair: None, parent: self.parent },
        }
    }

    /// The path as errors show it.
    fn shown(&self) -> &str {
        if self.path.is_empty() { "<nil>" } else { &self.path }
    }

    fn child(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl Node {
    pub(super) fn compile(schema: &Schema) -> Self {
        let some = |node: Self| (!node.is_empty()).then(|| Box::new(node));
        let below = schema.properties.iter().map(|(name, inner)| (name.clone(), Self::compile(inner)));
        Self {
            rules: schema.rules.iter().map(Compiled::new).collect(),
            properties: below.filter(|(_, node)| !node.is_empty()).collect(),
            additional: schema.additional.as_deref().map(Self::compile).and_then(some),
            items: schema.items.as_deref().map(Self::compile).and_then(some),
            all_of: schema.limits.all_of.iter().map(Self::compile).filter(|node| !node.is_empty()).collect(),
        }
    }

    /// May rules here or below cost much even where the object is small?
    pub(super) fn is_dear(&self) -> bool {
        let below = [&self.additional, &self.items].into_iter().flatten().map(Box::as_ref);
        self.rules.iter().any(|rule| rule.expression.as_ref().is_ok_and(Expression::is_dear))
            || below.chain(self.properties.values()).chain(&self.all_of).any(Self::is_dear)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
            && self.all_of.is_empty()
    }

    pub(super) fn check<'a>(
        &self,
        value: &'a Value,
        old: Option<&'a Value>,
        schema: &'a Schema,
        location: &ValueLocation<'a>,
        found: &mut Findings,
    ) {
        if value.is_null() || found.ended {
            return;
        }
        self.ask(value, old.filter(|old| !old.is_null()), schema, location, found);
        for branch in &self.all_of {
            let location = ValueLocation { path: location.path.clone(), pair: None, parent: location.parent };
            branch.check(value, old, schema, &location, found);
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let was = old.and_then(|old| old.get(name));
                    if let (Some(node), Some(inner)) =
                        (self.properties.get(name), schema.properties.get(name))
                    {
                        let location =
                            location.below(location.child(name), was.map(|was| (field, was, inner)));
                        node.check(field, was, inner, &location, found);
                    } else if let (Some(node), Some(inner)) = (&self.additional, &schema.additional)
                        && !schema.properties.contains_key(name)
                    {
                        let path = format!("{}[{name}]", location.path);
                        let location = location.below(path, was.map(|was| (field, was, inner.as_ref())));
                        node.check(field, was, inner, &location, found);
                    }
                }
            }
            Value::Array(items) => {
                let (Some(node), Some(inner)) = (&self.items, &schema.items) else { return };
                let olds = correlate::OldItems::of(old, schema);
                for (at, item) in items.iter().enumerate() {
                    let was = olds.get(item);
                    let path = format!("{}[{at}]", location.path);
                    let location = location.below(path, was.map(|was| (item, was, inner.as_ref())));
                    node.check(item, was, inner, &location, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn ask(
        &self,
        value: &Value,
        old: Option<&Value>,
        schema: &Schema,
        location: &ValueLocation<'_>,
        found: &mut Findings,
    ) {
        if self.rules.is_empty() {
            return;
        }
        let is = cel::typed(value, schema);
        let was = old.map(|old| cel::typed(old, schema));
        for compiled in &self.rules {
            if found.ended {
                return;
            }
            let rule = &compiled.rule;
            if compiled.transition && was.is_none() && !rule.optional_old_self {
                continue;
            }
            let mut variables = vec![("self", is.clone())];
            if rule.optional_old_self {
                variables.push(("oldSelf", cel::optional(was.clone())));
            } else if let Some(was) = &was {
                variables.push(("oldSelf", was.clone()));
            }
            let result = match &compiled.expression {
                Ok(expression) => expression.value(&variables, &mut found.budget),
                Err(why) => {
                    let detail = format!("rule compile error: {why}");
                    found.say(
                        // The type stands for the value where a rule could not be asked.
                        FieldError::invalid(location.shown(), schema.kind.name(), detail),
                    );
                    continue;
                }
            };
            let error = match result {
                Ok(kube_cel::cel::Value::Bool(true)) => continue,
                Ok(_) => compiled.broken(value, schema, location, &variables, &mut found.budget),
                Err(failure) => {
                    found.ended = matches!(failure, Failure::Exceeded(_));
                    found.say(failed(rule, failure, schema, location));
                    continue;
                }
            };
            if compiled.transition || !location.unchanged() {
                found.say(error);
            }
        }
    }
}

impl Compiled {
    fn new(rule: &Rule) -> Self {
        let expression = Expression::compile(&rule.rule);
        let message = rule.message_expression.as_deref().and_then(|source| Expression::compile(source).ok());
        let transition = expression.as_ref().is_ok_and(|expression| expression.mentions("oldSelf"));
        Self { rule: rule.clone(), expression, message, transition }
    }

    fn broken(
        &self,
        value: &Value,
        schema: &Schema,
        location: &ValueLocation<'_>,
        variables: &[(&str, kube_cel::cel::Value)],
        budget: &mut Budget,
    ) -> FieldError {
        let made = self.message.as_ref().and_then(|expression| match expression.value(variables, budget) {
            Ok(kube_cel::cel::Value::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        let usable = |text: &String| !text.is_empty() && text.len() <= MESSAGE_MOST && !text.contains('\n');
        let detail = made.filter(usable).unwrap_or_else(|| match stated(&self.rule) {
            Some(message) => message.to_owned(),
            None => format!("failed rule: {}", self.rule.rule.trim()),
        });
        let field = self.pointed(location);
        let shown = (!matches!(schema.kind, Kind::Object | Kind::Array)).then(|| value.clone());
        match self.rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(&field, detail),
            Some("FieldValueRequired") => FieldError::required(&field, detail),
            Some("FieldValueDuplicate") => {
                FieldError { value: shown, ..FieldError::duplicate(&field, Value::Null) }
            }
            _ => FieldError { value: shown, ..FieldError::invalid(&field, Value::Null, detail) },
        }
    }

    /// Where the error points: at the value, or at what `fieldPath` names below it.
    fn pointed(&self, location: &ValueLocation<'_>) -> String {
        let Some(steps) = self.rule.field_path.as_deref().and_then(super::super::field_path) else {
            return location.shown().to_owned();
        };
        steps.into_iter().fold(location.path.clone(), |path, step| match path.is_empty() {
            true => step,
            false => format!("{path}.{step}"),
        })
    }
}

/// The rule's own message, if it has one.
fn stated(rule: &Rule) -> Option<&str> {
    rule.message.as_deref().filter(|message| !message.is_empty()).map(str::trim)
}

fn failed(rule: &Rule, failure: Failure, schema: &Schema, location: &ValueLocation<'_>) -> FieldError {
    let said = stated(rule).unwrap_or_else(|| rule.rule.trim());
    let detail = match failure {
        Failure::Failed(why) if why.starts_with("no such overload") => format!(
            "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {said}"
        ),
        Failure::Failed(why) => format!("{why} evaluating rule: {said}"),
        Failure::Exceeded(call @ Exceeded::Call) => format!(
            "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {said}",
            call.words()
        ),
        Failure::Exceeded(budget @ Exceeded::Budget) => budget.words().to_owned(),
    };
    // The type stands for the value where a rule could not be asked.
    FieldError::invalid(location.shown(), schema.kind.name(), detail)
}
