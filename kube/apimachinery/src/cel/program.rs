//! An expression as it is run: operators told apart once, patterns compiled once.

use crate::schema::pattern;
use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators::{
    ADD, CONDITIONAL, DIVIDE, EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS, LOGICAL_AND,
    LOGICAL_NOT, LOGICAL_OR, MODULO, MULTIPLY, NEGATE, NOT_EQUALS, NOT_STRICTLY_FALSE, OPT_INDEX, SUBSTRACT,
};
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use regex::Regex;
use std::sync::Arc;

/// A step of a program.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Value),
    Variable(String),
    /// `has(of.field)`.
    Has {
        of: Box<Node>,
        field: String,
    },
    /// Elements, and which of them may be absent.
    List(Vec<(Node, bool)>),
    /// Keys, values, and which of them may be absent.
    Map(Vec<(Node, Node, bool)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// True also for what fails.
    NotFalse(Box<Node>),
    If(Box<[Node; 3]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Index {
        of: Box<Node>,
        key: Box<Node>,
        optional: bool,
    },
    Binary(Operator, Box<[Node; 2]>),
    Call(Box<Call>),
    Fold(Box<Fold>),
    Gather(Box<Gather>),
    /// What this CEL has not: messages with fields.
    Unsupported,
}

/// Operators on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// A function of the library.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) target: Option<Node>,
    /// The target's name if it is a bare one: it may be part of the function's name, as in `sets.contains`.
    pub(super) prefix: Option<String>,
    pub(super) arguments: Vec<Node>,
    /// The same call with its values as variables, for the library.
    pub(super) made: IdedExpr,
    /// The pattern, where it is known.
    pub(super) pattern: Option<Result<Arc<Regex>, String>>,
}

/// `all`, `exists`, `exists_one`.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    pub(super) variable: String,
    pub(super) result_variable: String,
    pub(super) initial: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

/// `map`, `filter`: the same as a fold that adds to a list, but the list is not copied for each element.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) range: Node,
    pub(super) variable: String,
    pub(super) filter: Option<Node>,
    pub(super) item: Node,
}

/// What a value is called in a made call.
pub(super) fn place(at: usize) -> String {
    format!("@{at}")
}

/// What a target is called in a made call.
pub(super) const TARGET: &str = "@target";

/// How deep comprehensions stand inside of each other: what an expression costs grows with the input to that power.
pub(super) fn nesting(tree: &IdedExpr) -> usize {
    let deepest = |trees: &mut dyn Iterator<Item = &IdedExpr>| trees.map(nesting).max().unwrap_or_default();
    match &tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => 0,
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Comprehension(loops) => {
            let inner = deepest(&mut [&loops.loop_cond, &loops.loop_step].into_iter());
            nesting(&loops.iter_range).max(1 + inner)
        }
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => {
            let entries = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => nesting(&field.value),
                EntryExpr::MapEntry(entry) => nesting(&entry.key).max(nesting(&entry.value)),
            });
            entries.max().unwrap_or_default()
        }
        Expr::Select(select) => nesting(&select.operand),
    }
}

impl Node {
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let boxed = |tree: &IdedExpr| Box::new(Self::of(tree));
        match &tree.expr {
            Expr::Unspecified | Expr::Struct(_) => Self::Unsupported,
            Expr::Literal(literal) => {
                Value::try_from(literal.to_val().as_ref()).map_or(Self::Unsupported, Self::Literal)
            }
            Expr::Ident(name) => Self::Variable(name.clone()),
            // All other selections were made indexes.
            Expr::Select(select) => Self::Has { of: boxed(&select.operand), field: select.field.clone() },
            Expr::List(list) => Self::List(
                list.elements
                    .iter()
                    .enumerate()
                    .map(|(at, element)| (Self::of(element), list.optional_indices.contains(&at)))
                    .collect(),
            ),
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::StructField(_) => return Self::Unsupported,
                        EntryExpr::MapEntry(entry) => {
                            entries.push((Self::of(&entry.key), Self::of(&entry.value), entry.optional));
                        }
                    }
                }
                Self::Map(entries)
            }
            Expr::Comprehension(loops) => Self::of_loop(loops),
            Expr::Call(call) => Self::of_call(call),
        }
    }

    fn of_call(call: &CallExpr) -> Self {
        let boxed = |tree: &IdedExpr| Box::new(Self::of(tree));
        let pair = |one: &IdedExpr, other: &IdedExpr| Box::new([Self::of(one), Self::of(other)]);
        match (call.func_name.as_str(), call.args.as_slice()) {
            (CONDITIONAL, [test, yes, no]) => {
                Self::If(Box::new([Self::of(test), Self::of(yes), Self::of(no)]))
            }
            (LOGICAL_AND, [left, right]) => Self::And(pair(left, right)),
            (LOGICAL_OR, [left, right]) => Self::Or(pair(left, right)),
            (LOGICAL_NOT, [one]) => Self::Not(boxed(one)),
            (NEGATE, [one]) => Self::Negate(boxed(one)),
            (NOT_STRICTLY_FALSE, [one]) => Self::NotFalse(boxed(one)),
            (name @ (INDEX | OPT_INDEX), [of, key]) => {
                Self::Index { of: boxed(of), key: boxed(key), optional: name == OPT_INDEX }
            }
            (name, [left, right]) => match operator(name) {
                Some(operator) => Self::Binary(operator, pair(left, right)),
                None => Self::Call(Box::new(Call::of(call))),
            },
            _ => Self::Call(Box::new(Call::of(call))),
        }
    }

    fn of_loop(loops: &ComprehensionExpr) -> Self {
        if let Some((filter, item)) = gathered(loops) {
            return Self::Gather(Box::new(Gather {
                range: Self::of(&loops.iter_range),
                variable: loops.iter_var.clone(),
                filter: filter.map(Self::of),
                item: Self::of(item),
            }));
        }
        Self::Fold(Box::new(Fold {
            range: Self::of(&loops.iter_range),
            variable: loops.iter_var.clone(),
            result_variable: loops.accu_var.clone(),
            initial: Self::of(&loops.accu_init),
            condition: Self::of(&loops.loop_cond),
            step: Self::of(&loops.loop_step),
            result: Self::of(&loops.result),
        }))
    }
}

/// The filter and the item of a comprehension that adds one to a list for each element.
fn gathered(loops: &ComprehensionExpr) -> Option<(Option<&IdedExpr>, &IdedExpr)> {
    let is_result = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(name) if *name == loops.accu_var);
    let added = |tree: &IdedExpr| -> bool {
        matches!(&tree.expr, Expr::Call(call) if call.func_name == ADD
            && matches!(call.args.as_slice(), [list, one] if is_result(list)
                && matches!(&one.expr, Expr::List(one) if one.elements.len() == 1 && one.optional_indices.is_empty())))
    };
    let empty = matches!(&loops.accu_init.expr, Expr::List(list) if list.elements.is_empty());
    let always =
        matches!(&loops.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(truth)) if *truth.inner());
    if !empty || !always || !is_result(&loops.result) {
        return None;
    }
    let (filter, step) = match &loops.loop_step.expr {
        Expr::Call(call) if call.func_name == CONDITIONAL => match call.args.as_slice() {
            [filter, step, otherwise] if is_result(otherwise) => (Some(filter), step),
            _ => return None,
        },
        _ => (None, &loops.loop_step),
    };
    if !added(step) {
        return None;
    }
    let Expr::Call(call) = &step.expr else { return None };
    let Expr::List(list) = &call.args.get(1)?.expr else { return None };
    Some((filter, list.elements.first()?))
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        ADD => Operator::Add,
        SUBSTRACT => Operator::Subtract,
        MULTIPLY => Operator::Multiply,
        DIVIDE => Operator::Divide,
        MODULO => Operator::Modulo,
        EQUALS => Operator::Equal,
        NOT_EQUALS => Operator::NotEqual,
        LESS => Operator::Less,
        LESS_EQUALS => Operator::LessOrEqual,
        GREATER => Operator::Greater,
        GREATER_EQUALS => Operator::GreaterOrEqual,
        IN => Operator::In,
        _ => return None,
    })
}

impl Call {
    fn of(call: &CallExpr) -> Self {
        let variable = |name: String| IdedExpr { id: 0, expr: Expr::Ident(name) };
        let prefix = call.target.as_deref().and_then(|target| match &target.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        });
        let target_name = prefix.clone().unwrap_or_else(|| TARGET.to_owned());
        let made = Expr::Call(CallExpr {
            func_name: call.func_name.clone(),
            target: call.target.as_ref().map(|_| Box::new(variable(target_name))),
            args: (0..call.args.len()).map(|at| variable(place(at))).collect(),
        });
        let by_pattern = matches!(call.func_name.as_str(), "matches" | "find" | "findAll");
        let pattern = match call.args.get(usize::from(call.target.is_none())).map(|tree| &tree.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) if by_pattern => {
                Some(pattern::compiled(text.inner()))
            }
            _ => None,
        };
        Self {
            name: call.func_name.clone(),
            target: call.target.as_deref().map(Node::of),
            prefix,
            arguments: call.args.iter().map(Node::of).collect(),
            made: IdedExpr { id: 0, expr: made },
            pattern,
        }
    }
}
