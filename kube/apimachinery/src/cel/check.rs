//! Does an expression fit the types of a schema? As much of CEL's type check as catches a writer's slips: unknown
//! variables, unknown fields, comparisons that can't be.

use super::Expression;
use super::convert::escaped;
use crate::schema::{Kind, Schema};
use kube_cel::cel::common::ast::operators::{
    ADD, CONDITIONAL, EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS, LOGICAL_AND,
    LOGICAL_NOT, LOGICAL_OR, NOT_EQUALS,
};
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

/// What is known about a part of an expression.
#[derive(Clone, Copy, Debug)]
enum Type<'s> {
    Unknown,
    Plain(&'static str),
    Of(&'s Schema),
}

/// The type that the expression has, where it is known; or what is wrong.
pub(crate) fn check(
    expression: &Expression,
    source: &str,
    types: &Schema,
    old_optional: bool,
) -> Result<Option<&'static str>, String> {
    let old = if old_optional { Type::Unknown } else { Type::Of(types) };
    let mut checker =
        Checker { source, scope: vec![("self".to_owned(), Type::Of(types)), ("oldSelf".to_owned(), old)] };
    let found = checker.node(expression.tree())?;
    Ok(found.name())
}

/// Are these the only variables that the expression uses?
pub(crate) fn check_names(expression: &Expression, source: &str, known: &[&str]) -> Result<(), String> {
    let scope = known.iter().map(|name| ((*name).to_owned(), Type::Unknown)).collect();
    Checker { source, scope }.node(expression.tree()).map(|_| ())
}

/// The fields of a variable that the expression reads.
pub(crate) fn fields_of(expression: &Expression, variable: &str) -> Vec<String> {
    let mut found = Vec::new();
    fields_in(expression.tree(), variable, &mut found);
    found
}

fn fields_in(tree: &IdedExpr, variable: &str, found: &mut Vec<String>) {
    let is_variable = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(name) if name == variable);
    match &tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
        Expr::Select(select) => {
            if is_variable(&select.operand) {
                found.push(select.field.clone());
            }
            fields_in(&select.operand, variable, found);
        }
        Expr::Call(call) => {
            if let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] =
                call.args.as_slice()
                && is_variable(operand)
            {
                found.push(name.inner().to_owned());
            }
            call.target.iter().for_each(|target| fields_in(target, variable, found));
            call.args.iter().for_each(|argument| fields_in(argument, variable, found));
        }
        Expr::Comprehension(loops) => {
            for part in
                [&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result]
            {
                fields_in(part, variable, found);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|element| fields_in(element, variable, found)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    fields_in(&entry.key, variable, found);
                    fields_in(&entry.value, variable, found);
                }
            }
        }
    }
}

struct Checker<'s> {
    source: &'s str,
    scope: Vec<(String, Type<'s>)>,
}

impl Type<'_> {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Plain(name) => Some(name),
            Self::Of(schema) => match schema.kind {
                Kind::Integer => Some("int"),
                Kind::Number => Some("double"),
                Kind::Boolean => Some("bool"),
                Kind::String => match schema.limits.format.as_deref() {
                    Some("date-time" | "datetime" | "date") => Some("timestamp"),
                    Some("duration") => Some("duration"),
                    Some("byte") => Some("bytes"),
                    _ => Some("string"),
                },
                Kind::Array => Some("list"),
                Kind::Object => Some("object"),
                Kind::Any | Kind::IntOrString => None,
            },
        }
    }

    /// Types that are equal only to themselves; lists and objects are left alone.
    fn scalar(self) -> Option<&'static str> {
        self.name().filter(|name| !matches!(*name, "list" | "object" | "null"))
    }
}

impl<'s> Checker<'s> {
    fn node(&mut self, tree: &IdedExpr) -> Result<Type<'s>, String> {
        match &tree.expr {
            Expr::Unspecified => Ok(Type::Unknown),
            Expr::Literal(literal) => Ok(Type::Plain(match literal {
                LiteralValue::Boolean(_) => "bool",
                LiteralValue::Bytes(_) => "bytes",
                LiteralValue::Double(_) => "double",
                LiteralValue::Int(_) => "int",
                LiteralValue::Null => "null",
                LiteralValue::String(_) => "string",
                LiteralValue::UInt(_) => "uint",
            })),
            Expr::Ident(name) => self.variable(name),
            Expr::List(list) => {
                for element in &list.elements {
                    self.node(element)?;
                }
                Ok(Type::Plain("list"))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.node(&entry.key)?;
                        self.node(&entry.value)?;
                    }
                }
                Ok(Type::Plain("object"))
            }
            Expr::Struct(_) => Ok(Type::Unknown),
            Expr::Select(select) => {
                // What is left of selections are those inside `has`.
                let operand = self.node(&select.operand)?;
                self.field(operand, &select.field)?;
                Ok(Type::Plain("bool"))
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => {
                let range = self.node(&loops.iter_range)?;
                let (first, second) = match range {
                    Type::Of(schema) => match (&schema.items, &schema.additional) {
                        (Some(items), _) if loops.iter_var2.is_none() => {
                            (Type::Of(items.as_ref()), Type::Unknown)
                        }
                        (Some(items), _) => (Type::Plain("int"), Type::Of(items.as_ref())),
                        (None, Some(values)) => (Type::Plain("string"), Type::Of(values.as_ref())),
                        (None, None) => (Type::Unknown, Type::Unknown),
                    },
                    Type::Unknown | Type::Plain(_) => (Type::Unknown, Type::Unknown),
                };
                let initial = self.node(&loops.accu_init)?;
                let length = self.scope.len();
                self.scope.push((loops.accu_var.clone(), initial));
                self.scope.push((loops.iter_var.clone(), first));
                if let Some(name) = &loops.iter_var2 {
                    self.scope.push((name.clone(), second));
                }
                self.node(&loops.loop_cond)?;
                self.node(&loops.loop_step)?;
                let result = self.node(&loops.result)?;
                self.scope.truncate(length);
                Ok(result)
            }
        }
    }

    fn variable(&self, name: &str) -> Result<Type<'s>, String> {
        /// Names of types are values too.
        const TYPES: &[&str] = &[
            "bool",
            "bytes",
            "double",
            "duration",
            "int",
            "list",
            "map",
            "null_type",
            "string",
            "timestamp",
            "type",
            "uint",
            "optional",
            "google",
            "math",
            "strings",
            "sets",
            "format",
            "ip",
            "cidr",
            "base64",
            "jsonpatch",
            "optional_type",
        ];
        if let Some((_, known)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Ok(*known);
        }
        if name.starts_with('@') || TYPES.contains(&name) {
            return Ok(Type::Unknown);
        }
        Err(self.at(name, &format!("undeclared reference to '{name}' (in container '')")))
    }

    fn field(&self, operand: Type<'s>, name: &str) -> Result<Type<'s>, String> {
        let Type::Of(schema) = operand else { return Ok(Type::Unknown) };
        if schema.kind != Kind::Object || schema.embedded {
            return Ok(Type::Unknown);
        }
        if let Some(values) = &schema.additional {
            return Ok(Type::Of(values.as_ref()));
        }
        let found = schema.properties.iter().find(|(property, _)| escaped(property) == name);
        match found {
            Some((_, property)) => Ok(Type::Of(property)),
            None if matches!(name, "apiVersion" | "kind" | "metadata" | "name" | "generateName") => {
                Ok(Type::Unknown)
            }
            None => Err(self.at(&format!(".{name}"), &format!("undefined field '{name}'"))),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Result<Type<'s>, String> {
        if let Some(target) = &call.target {
            self.node(target)?;
        }
        let mut given = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            given.push(self.node(argument)?);
        }
        match (call.func_name.as_str(), given.as_slice()) {
            (INDEX, [operand, key]) => match (&call.args[1].expr, operand) {
                (Expr::Literal(LiteralValue::String(name)), _) => self.field(*operand, name.inner()),
                (_, Type::Of(schema)) => Ok(match (&schema.items, &schema.additional, key.name()) {
                    (Some(items), _, Some("int") | None) => Type::Of(items.as_ref()),
                    (None, Some(values), _) => Type::Of(values.as_ref()),
                    _ => Type::Unknown,
                }),
                _ => Ok(Type::Unknown),
            },
            (
                operator @ (EQUALS | NOT_EQUALS | LESS | LESS_EQUALS | GREATER | GREATER_EQUALS),
                [left, right],
            ) => {
                if let (Some(a), Some(b)) = (left.scalar(), right.scalar())
                    && a != b
                    // Numbers of different types can be ordered, but not be equal.
                    && (matches!(operator, EQUALS | NOT_EQUALS) || !(number(a) && number(b)))
                {
                    let sign = operator.trim_matches('_');
                    let why = format!("found no matching overload for '{operator}' applied to '({a}, {b})'");
                    return Err(self.at(sign, &why));
                }
                Ok(Type::Plain("bool"))
            }
            (LOGICAL_AND | LOGICAL_OR | LOGICAL_NOT | IN, _) => Ok(Type::Plain("bool")),
            (ADD, [left, right]) if left.name().is_some() && left.name() == right.name() => {
                Ok(left.name().map_or(Type::Unknown, Type::Plain))
            }
            (CONDITIONAL, [_, yes, no]) => Ok(if yes.name() == no.name() {
                yes.name().map_or(Type::Unknown, Type::Plain)
            } else {
                Type::Unknown
            }),
            ("size", _) => Ok(Type::Plain("int")),
            ("string", [_]) => Ok(Type::Plain("string")),
            ("startsWith" | "endsWith" | "contains" | "matches", _) => Ok(Type::Plain("bool")),
            _ => Ok(Type::Unknown),
        }
    }

    /// The complaint with the place, found by what stands there.
    fn at(&self, what: &str, complaint: &str) -> String {
        let start = self.source.find(what).unwrap_or_default();
        let (line, text, column) = self
            .source
            .split('\n')
            .scan(0, |offset, text| {
                let from = *offset;
                *offset += text.len() + 1;
                Some((from, text))
            })
            .enumerate()
            .find(|(_, (from, text))| start <= from + text.len())
            .map_or((1, self.source, 0), |(line, (from, text))| (line + 1, text, start - from));
        let dots = ".".repeat(column);
        format!("ERROR: <input>:{line}:{}: {complaint}\n | {text}\n | {dots}^", column + 1)
    }
}

fn number(name: &str) -> bool {
    matches!(name, "int" | "uint" | "double")
}
