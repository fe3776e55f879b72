//! Runs a program: the library's interpreter with a meter. The library has none, copies a list for each element that is
//! added to it, and reads every variable anew for each expression. Its operators and functions are used as they are.

use self::Stop::{Dear, Failed};
use super::FUNCTIONS;
use super::cost::{self, Budget, Exceeded, Meter};
use super::program::{Call, Fold, Gather, Node, Operator, TARGET, place};
use crate::schema::pattern;
use kube_cel::cel::common::value::Val;
use kube_cel::cel::objects::{AsKeyRef, Key, KeyRef, Map, OptionalValue};
use kube_cel::cel::{ExecutionError, Value};
use regex::Regex;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Why a run has no value.
pub(super) enum Stop {
    Failed(ExecutionError),
    Dear(Exceeded),
}

impl From<ExecutionError> for Stop {
    fn from(error: ExecutionError) -> Self {
        Failed(error)
    }
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Self {
        Dear(exceeded)
    }
}

type Ran = Result<Value, Stop>;

/// What compiling a pattern costs that is known only now.
const PATTERN_COST: u64 = 10_000;

/// The value of a program with these variables; what it costs is taken from the budget.
pub(super) fn run(program: &Node, variables: &[(&str, Value)], budget: &mut Budget) -> Ran {
    let mut run = Run {
        scope: variables.iter().map(|(name, value)| (*name, value.clone())).collect(),
        meter: Meter::of(budget),
        patterns: HashMap::new(),
    };
    let result = run.node(program);
    budget.take(run.meter.spent());
    result
}

struct Run<'a> {
    /// The innermost variable of a name is the last.
    scope: Vec<(&'a str, Value)>,
    meter: Meter,
    patterns: HashMap<Arc<String>, Arc<Regex>>,
}

impl<'a> Run<'a> {
    fn node(&mut self, node: &'a Node) -> Ran {
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Variable(name) => {
                self.meter.charge(1)?;
                self.variable(name)
                    .ok_or_else(|| Failed(ExecutionError::UndeclaredReference(Arc::new(name.clone()))))
            }
            Node::Has { of, field } => match self.node(of)? {
                Value::Map(map) => Ok(Value::Bool(map.map.contains_key(&Key::from(field.as_str())))),
                _ => Ok(Value::Bool(false)),
            },
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Not(one) => {
                self.meter.charge(1)?;
                let truth = self.truth(one)?;
                Ok(Value::Bool(!truth))
            }
            Node::Negate(one) => {
                self.meter.charge(1)?;
                let value = boxed(self.node(one)?)?;
                let negator = value.as_negator().ok_or(ExecutionError::NoSuchOverload)?;
                Ok(Value::try_from(negator.negate()?.as_ref())?)
            }
            Node::NotFalse(one) => {
                self.meter.charge(1)?;
                match self.truth(one) {
                    Ok(truth) => Ok(Value::Bool(truth)),
                    Err(Failed(_)) => Ok(Value::Bool(true)),
                    Err(dear) => Err(dear),
                }
            }
            Node::If(parts) => {
                let [test, yes, no] = parts.as_ref();
                if self.truth(test)? { self.node(yes) } else { self.node(no) }
            }
            Node::And(sides) => self.either(sides, false),
            Node::Or(sides) => self.either(sides, true),
            Node::Index { of, key, optional } => self.index(of, key, *optional),
            Node::Binary(operator, sides) => {
                let [left, right] = sides.as_ref();
                let (left, right) = (self.node(left)?, self.node(right)?);
                self.binary(*operator, left, right)
            }
            Node::Call(call) => self.call(call),
            Node::Fold(fold) => self.fold(fold),
            Node::Gather(gather) => self.gather(gather),
            Node::Unsupported => Err(Failed(ExecutionError::NoSuchOverload)),
        }
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    fn truth(&mut self, node: &'a Node) -> Result<bool, Stop> {
        match self.node(node)? {
            Value::Bool(truth) => Ok(truth),
            _ => Err(Failed(ExecutionError::NoSuchOverload)),
        }
    }

    /// `||` and `&&`: a side that decides alone counts more than one that fails.
    fn either(&mut self, sides: &'a [Node; 2], decides: bool) -> Ran {
        let [left, right] = sides;
        let left = match self.truth(left) {
            Ok(truth) if truth == decides => return Ok(Value::Bool(decides)),
            Ok(_) => None,
            Err(Failed(error)) => Some(error),
            Err(dear) => return Err(dear),
        };
        let right = match self.node(right)? {
            Value::Bool(truth) => Some(truth),
            _ => None,
        };
        match (left, right) {
            (None, Some(right)) => Ok(Value::Bool(right)),
            (Some(_), Some(right)) if right == decides => Ok(Value::Bool(decides)),
            (left, _) => Err(Failed(left.unwrap_or(ExecutionError::NoSuchOverload))),
        }
    }

    fn list(&mut self, elements: &'a [(Node, bool)]) -> Ran {
        self.meter.charge(10)?;
        self.meter.make(24 * elements.len() as u64)?;
        let mut list = Vec::with_capacity(elements.len());
        for (element, optional) in elements {
            list.extend(self.present(element, *optional)?);
        }
        Ok(Value::List(Arc::new(list)))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Ran {
        self.meter.charge(30)?;
        self.meter.make(80 * entries.len() as u64)?;
        let mut map = HashMap::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key =
                TryInto::<Key>::try_into(self.node(key)?).map_err(ExecutionError::UnsupportedKeyType)?;
            if let Some(value) = self.present(value, *optional)? {
                map.insert(key, value);
            }
        }
        Ok(Value::Map(Map { map: Arc::new(map) }))
    }

    /// A value; nothing if it is an optional that is absent, where that may be.
    fn present(&mut self, node: &'a Node, optional: bool) -> Result<Option<Value>, Stop> {
        let value = self.node(node)?;
        if optional && let Some(inner) = as_optional(&value) {
            return Ok(inner.value().cloned());
        }
        Ok(Some(value))
    }

    fn index(&mut self, of: &'a Node, key: &'a Node, optional: bool) -> Ran {
        self.meter.charge(1)?;
        let of = self.node(of)?;
        let none = || Ok(super::optional(None));
        let (of, optional) = match as_optional(&of) {
            None => (of, optional),
            Some(inner) => match inner.value() {
                None => return none(),
                Some(inner) => (inner.clone(), true),
            },
        };
        if !matches!(of, Value::List(_) | Value::Map(_)) {
            return Err(Failed(ExecutionError::NoSuchOverload));
        }
        // A field's name is no step of its own.
        let key = self.node(key)?;
        match (at(&of, &key), optional) {
            (Ok(found), true) => Ok(super::optional(Some(found))),
            (Err(_), true) => none(),
            (found, false) => Ok(found?),
        }
    }

    fn binary(&mut self, operator: Operator, left: Value, right: Value) -> Ran {
        match operator {
            Operator::Equal => Ok(Value::Bool(self.same(&left, &right)?)),
            Operator::NotEqual => Ok(Value::Bool(!self.same(&left, &right)?)),
            Operator::In => self.is_in(&left, &right),
            Operator::Add => self.add(left, right),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let letters = cost::size(&left).min(cost::size(&right));
                self.meter.charge(cost::traversal(letters))?;
                let order = match (&left, &right) {
                    (Value::Int(left), Value::Int(right)) => left.cmp(right),
                    (Value::String(left), Value::String(right)) => left.cmp(right),
                    (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => {
                        return Err(Failed(ExecutionError::NoSuchOverload));
                    }
                    _ => {
                        let (left, right) = (boxed(left)?, boxed(right)?);
                        let comparer = left.as_comparer().ok_or(ExecutionError::NoSuchOverload)?;
                        comparer.compare(right.as_ref())?
                    }
                };
                Ok(Value::Bool(match operator {
                    Operator::Less => order == Ordering::Less,
                    Operator::LessOrEqual => order != Ordering::Greater,
                    Operator::Greater => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                self.meter.charge(1)?;
                if matches!(left, Value::List(_) | Value::Map(_)) {
                    return Err(Failed(ExecutionError::NoSuchOverload));
                }
                let (left, right) = (boxed(left)?, boxed(right)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                let none = ExecutionError::NoSuchOverload;
                let result = match operator {
                    Operator::Subtract => left.as_subtractor().ok_or(none)?.sub(right)?,
                    Operator::Multiply => left.as_multiplier().ok_or(none)?.mul(right)?,
                    Operator::Divide => left.as_divider().ok_or(none)?.div(right)?,
                    _ => left.as_modder().ok_or(none)?.modulo(right)?,
                };
                Ok(Value::try_from(result.as_ref())?)
            }
        }
    }

    fn add(&mut self, left: Value, right: Value) -> Ran {
        let letters = match (&left, &right) {
            (Value::String(_), Value::String(_)) | (Value::Bytes(_), Value::Bytes(_)) => {
                cost::size(&left) + cost::size(&right)
            }
            (Value::List(_), Value::List(_)) => 24 * (cost::size(&left) + cost::size(&right)),
            _ => 1,
        };
        self.meter.charge(cost::traversal(letters))?;
        self.meter.make(letters)?;
        match (left, right) {
            (Value::List(left), Value::List(right)) => {
                let mut all = Vec::with_capacity(left.len() + right.len());
                all.extend(left.iter().cloned());
                all.extend(right.iter().cloned());
                Ok(Value::List(Arc::new(all)))
            }
            (Value::Map(_) | Value::List(_), _) => Err(Failed(ExecutionError::NoSuchOverload)),
            (left, right) => {
                let (left, right) = (boxed(left)?, boxed(right)?);
                let adder = left.as_adder().ok_or(ExecutionError::NoSuchOverload)?;
                Ok(Value::try_from(adder.add(right.as_ref())?.as_ref())?)
            }
        }
    }

    fn is_in(&mut self, one: &Value, all: &Value) -> Ran {
        self.meter.charge(1)?;
        match all {
            Value::List(items) => {
                for item in items.iter() {
                    if self.same(one, item)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Value::Map(map) => {
                let key = KeyRef::try_from(one).map_err(ExecutionError::UnsupportedKeyType)?;
                Ok(Value::Bool(map.map.contains_key(&key as &dyn AsKeyRef)))
            }
            _ => Err(Failed(ExecutionError::NoSuchOverload)),
        }
    }

    /// Are two values equal? Numbers of different types are not. Each part that is compared is a unit.
    fn same(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        let letters = cost::size(left).min(cost::size(right));
        match (left, right) {
            (Value::List(left), Value::List(right)) => {
                self.meter.charge(1)?;
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right.iter()) {
                    if !self.same(left, right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(left), Value::Map(right)) => {
                self.meter.charge(1)?;
                if left.map.len() != right.map.len() {
                    return Ok(false);
                }
                for (key, left) in left.map.iter() {
                    let Some(right) = right.map.get(key) else { return Ok(false) };
                    if !self.same(left, right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                self.meter.charge(cost::traversal(letters).max(1))?;
                match (left, right) {
                    (Value::Int(left), Value::Int(right)) => Ok(left == right),
                    (Value::String(left), Value::String(right)) => Ok(left == right),
                    (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
                    (Value::Null, Value::Null) => Ok(true),
                    (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => Ok(false),
                    _ => Ok(boxed(left.clone())?.equals(boxed(right.clone())?.as_ref())),
                }
            }
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Ran {
        let initial = self.node(&fold.initial)?;
        let range = self.node(&fold.range)?;
        let depth = self.scope.len();
        self.scope.push((&fold.result_variable, initial));
        let result = self.fold_in(fold, &range, depth);
        self.scope.truncate(depth);
        result
    }

    fn fold_in(&mut self, fold: &'a Fold, range: &Value, depth: usize) -> Ran {
        for item in items(range)? {
            self.scope.truncate(depth + 1);
            if !self.truth(&fold.condition)? {
                break;
            }
            self.scope.push((&fold.variable, item));
            let result = self.node(&fold.step)?;
            if let Some(slot) = self.scope.get_mut(depth) {
                slot.1 = result;
            }
        }
        self.node(&fold.result)
    }

    fn gather(&mut self, gather: &'a Gather) -> Ran {
        self.meter.charge(11)?;
        let range = self.node(&gather.range)?;
        let depth = self.scope.len();
        let result = self.gather_in(gather, &range, depth);
        self.scope.truncate(depth);
        result
    }

    fn gather_in(&mut self, gather: &'a Gather, range: &Value, depth: usize) -> Ran {
        let mut list = Vec::new();
        for item in items(range)? {
            self.scope.truncate(depth);
            self.scope.push((&gather.variable, item));
            if let Some(filter) = &gather.filter {
                self.meter.charge(1)?;
                if !self.truth(filter)? {
                    continue;
                }
            }
            // The list, a new one of one element, and both together.
            self.meter.charge(12)?;
            self.meter.make(48)?;
            list.push(self.node(&gather.item)?);
        }
        Ok(Value::List(Arc::new(list)))
    }

    fn call(&mut self, call: &'a Call) -> Ran {
        let target = match (&call.target, &call.prefix) {
            (None, _) => None,
            // It may be part of the function's name.
            (Some(_), Some(prefix)) => {
                self.meter.charge(1)?;
                self.variable(prefix)
            }
            (Some(target), None) => Some(self.node(target)?),
        };
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.node(argument)?);
        }
        let given: Vec<&Value> = target.iter().chain(&arguments).collect();
        match (call.name.as_str(), given.as_slice()) {
            ("size", [Value::List(_) | Value::Map(_)]) => {
                self.meter.charge(1)?;
                return Ok(Value::Int(i64::try_from(cost::size(given[0])).unwrap_or(i64::MAX)));
            }
            ("matches" | "find" | "findAll", [Value::String(text), Value::String(pattern), rest @ ..]) => {
                return self.by_pattern(call, text, pattern, rest.first().copied());
            }
            _ => {}
        }
        let (mut units, mut bytes) = cost::of_call(&call.name, &given);
        if let Some(prefix) = &call.prefix {
            // A variable may have the name of a library: which one is meant is the library's to say.
            let own: Vec<&Value> = arguments.iter().collect();
            let (more, larger) = cost::of_call(&format!("{prefix}.{}", call.name), &own);
            (units, bytes) = (units.max(more), bytes.max(larger));
        }
        self.meter.charge(units)?;
        self.meter.make(bytes)?;
        let mut scope = FUNCTIONS.new_inner_scope();
        if let Some(target) = target {
            scope.add_variable_from_value(call.prefix.as_deref().unwrap_or(TARGET), target);
        }
        for (at, argument) in arguments.into_iter().enumerate() {
            scope.add_variable_from_value(place(at), argument);
        }
        Ok(Value::resolve(&call.made, &scope)?)
    }

    fn by_pattern(&mut self, call: &Call, text: &str, pattern: &Arc<String>, most: Option<&Value>) -> Ran {
        let letters = cost::traversal(1 + text.len() as u64);
        self.meter.charge(letters.saturating_mul((pattern.len() as u64).div_ceil(4)).max(1))?;
        let failed =
            |why: String| ExecutionError::FunctionError { function: call.name.clone(), message: why };
        let regex = match &call.pattern {
            Some(compiled) => Arc::clone(compiled.as_ref().map_err(|why| failed(why.clone()))?),
            None => self.compiled(pattern)?.map_err(failed)?,
        };
        let owned = |found: &str| Value::String(Arc::new(found.to_owned()));
        match call.name.as_str() {
            "matches" => Ok(Value::Bool(regex.is_match(text))),
            "find" => Ok(owned(regex.find(text).map_or("", |found| found.as_str()))),
            _ => {
                let most = match most {
                    Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                    _ => usize::MAX,
                };
                let mut found = Vec::new();
                for one in regex.find_iter(text).take(most) {
                    // Each search may look at all the rest.
                    self.meter.charge((text.len() - one.start()) as u64 / 100 + 1)?;
                    self.meter.make(72 + one.len() as u64)?;
                    found.push(owned(one.as_str()));
                }
                Ok(Value::List(Arc::new(found)))
            }
        }
    }

    /// A pattern that is known only now. It is not kept longer than the run.
    fn compiled(&mut self, pattern: &Arc<String>) -> Result<Result<Arc<Regex>, String>, Stop> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(Ok(Arc::clone(known)));
        }
        self.meter.charge(PATTERN_COST)?;
        self.meter.make(pattern::PASSING_MOST as u64)?;
        let built = pattern::built(pattern, pattern::PASSING_MOST).map(Arc::new);
        if let Ok(regex) = &built {
            self.patterns.insert(Arc::clone(pattern), Arc::clone(regex));
        }
        Ok(built)
    }
}

fn boxed(value: Value) -> Result<Box<dyn Val>, ExecutionError> {
    value.try_into()
}

fn as_optional(value: &Value) -> Option<&OptionalValue> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref::<OptionalValue>(),
        _ => None,
    }
}

/// What a comprehension walks through: a list's elements or a map's keys.
fn items(range: &Value) -> Result<Box<dyn Iterator<Item = Value> + '_>, ExecutionError> {
    match range {
        Value::List(items) => Ok(Box::new(items.iter().cloned())),
        Value::Map(map) => Ok(Box::new(map.map.keys().map(|key| match key {
            Key::Int(number) => Value::Int(*number),
            Key::Uint(number) => Value::UInt(*number),
            Key::Bool(truth) => Value::Bool(*truth),
            Key::String(text) => Value::String(Arc::clone(text)),
        }))),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// An element of a list or a map.
fn at(of: &Value, key: &Value) -> Result<Value, ExecutionError> {
    match of {
        Value::List(items) => {
            let at = match key {
                Value::Int(at) => usize::try_from(*at).ok(),
                Value::UInt(at) => usize::try_from(*at).ok(),
                _ => return Err(ExecutionError::NoSuchOverload),
            };
            let found = at.and_then(|at| items.get(at)).cloned();
            found.ok_or_else(|| ExecutionError::IndexOutOfBounds(key.clone()))
        }
        Value::Map(map) => {
            let key = KeyRef::try_from(key).map_err(|_| ExecutionError::NoSuchOverload)?;
            let found = map.map.get(&key as &dyn AsKeyRef).cloned();
            found.ok_or_else(|| {
                let name = match key {
                    KeyRef::Int(number) => number.to_string(),
                    KeyRef::Uint(number) => number.to_string(),
                    KeyRef::Bool(truth) => truth.to_string(),
                    KeyRef::String(text) => text.to_owned(),
                };
                ExecutionError::NoSuchKey(Arc::new(name))
            })
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}
