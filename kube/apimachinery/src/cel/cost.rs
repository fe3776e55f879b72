//! What expressions may cost, counted as kube-apiserver counts it (`k8s.io/apiserver/pkg/apis/cel`).
//!
//! A unit is about a step of the interpreter: a variable, a field, a call. Ten letters that are looked at are one more. What
//! kube-apiserver bounds by an estimate when a rule is written, the size of what is made, is bounded here while it runs.

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, OptionalValue};

/// Most units of one run of one expression: about a tenth of a second.
const CALL_MOST: u64 = 1_000_000;
/// Most units of all rules of one object, or of one policy under one binding.
const OBJECT_MOST: u64 = 10_000_000;
/// Most units of a policy's match conditions.
const CONDITIONS_MOST: u64 = 2_500_000;
/// Most units of all policies together that one request is put to.
const REQUEST_MOST: u64 = 40_000_000;
/// Most bytes that one expression may make, what it drops again included.
const MADE_MOST: u64 = 16 << 20;
/// From here on a run is worth a thread of its own: some milliseconds.
pub(crate) const DEAR: u64 = 50_000;

/// Why a run was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// One expression cost too much.
    Call,
    /// Expressions cost too much together.
    Budget,
}

impl Exceeded {
    /// In the words of kube-apiserver.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Call => "operation cancelled: actual cost limit exceeded",
            Self::Budget => {
                "validation failed due to running out of cost budget, no further validation rules will be run"
            }
        }
    }
}

/// What is left for a number of expressions.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// For all policies that one request is put to.
    #[must_use]
    pub fn request() -> Self {
        Self::new(REQUEST_MOST)
    }

    /// For the rules of one object, or one policy under one binding.
    pub(crate) fn object() -> Self {
        Self::new(OBJECT_MOST)
    }

    /// For a policy's match conditions.
    pub(crate) fn conditions() -> Self {
        Self::new(CONDITIONS_MOST)
    }

    fn new(left: u64) -> Self {
        Self { left, spent: 0 }
    }

    /// As much of `other` as is left here.
    pub(crate) fn within(&self, other: &Self) -> Self {
        Self::new(self.left.min(other.left))
    }

    /// Takes what a run cost.
    pub(crate) fn take(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
        self.spent = self.spent.saturating_add(cost);
    }

    /// What was spent.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

/// Counts what one run costs.
#[derive(Debug)]
pub(super) struct Meter {
    limit: u64,
    by_budget: bool,
    spent: u64,
    made: u64,
}

impl Meter {
    pub(super) fn of(budget: &Budget) -> Self {
        Self { limit: budget.left.min(CALL_MOST), by_budget: budget.left < CALL_MOST, spent: 0, made: 0 }
    }

    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    fn exceeded(&self) -> Exceeded {
        if self.by_budget { Exceeded::Budget } else { Exceeded::Call }
    }

    /// Counts units before they are used.
    pub(super) fn charge(&mut self, units: u64) -> Result<(), Exceeded> {
        self.spent = self.spent.saturating_add(units);
        if self.spent > self.limit { Err(self.exceeded()) } else { Ok(()) }
    }

    /// Counts bytes before they are made.
    pub(super) fn make(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.made = self.made.saturating_add(bytes);
        if self.made > MADE_MOST { Err(self.exceeded()) } else { Ok(()) }
    }
}

/// A tenth, rounded up: what looking at letters costs.
pub(super) fn traversal(letters: u64) -> u64 {
    letters.div_ceil(10)
}

/// What CEL calls the size of a value; 1 of what has none.
pub(super) fn size(value: &Value) -> u64 {
    let size = match value {
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 1,
    };
    size as u64
}

/// What walking through a whole value costs: a unit for each part, and its letters.
pub(super) fn weight(value: &Value) -> u64 {
    match value {
        Value::List(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Map(map) => {
            let key = |key: &Key| if let Key::String(text) = key { traversal(text.len() as u64) } else { 1 };
            1 + map.map.iter().map(|(name, value)| key(name) + weight(value)).sum::<u64>()
        }
        Value::String(_) | Value::Bytes(_) => 1 + traversal(size(value)),
        Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => 1 + optional.value().map_or(0, weight),
            None => 1,
        },
        _ => 1,
    }
}

/// What a call costs, and at most how many bytes its result takes, both before it is made. `given` has the target first.
pub(super) fn of_call(name: &str, given: &[&Value]) -> (u64, u64) {
    let size_at = |at: usize| given.get(at).map_or(0, |value| size(value));
    let walked: u64 = given.iter().map(|value| weight(value)).sum();
    let first = traversal(size_at(0));
    let (cost, made) = match name {
        "contains" | "indexOf" | "lastIndexOf" => (first * traversal(size_at(1)), 0),
        "replace" => {
            let (text, from, to) = (size_at(0), size_at(1).max(1), size_at(2));
            let made = (text / from + 1).saturating_mul(to).saturating_add(text);
            (traversal(made) + first, made)
        }
        "split" => {
            let parts = size_at(0) / size_at(1).max(1) + 1;
            (2 * first, parts.saturating_mul(64) + size_at(0))
        }
        "join" => {
            let letters = walked.saturating_mul(10) + size_at(0).saturating_mul(size_at(1));
            (traversal(letters), letters)
        }
        // Each letter of the format may stand for an argument, and a number may be asked for with many digits.
        "format" => (walked + digits(given.first().copied()), walked.saturating_mul(64)),
        "lists.range" | "range" => {
            let items = given.iter().find_map(|value| match value {
                Value::Int(items) => u64::try_from(*items).ok(),
                _ => None,
            });
            let items = items.unwrap_or_default();
            (items, items.saturating_mul(48))
        }
        // Each element is compared with all the others.
        "distinct" => (walked.saturating_mul(size_at(0)), walked.saturating_mul(48)),
        "sets.contains" | "sets.equivalent" | "sets.intersects" | "equivalent" | "intersects" => {
            (given.iter().fold(1, |product: u64, value| product.saturating_mul(weight(value))), 0)
        }
        "sort" => (walked.saturating_mul(u64::from(walked.max(1).ilog2()) + 1), walked.saturating_mul(48)),
        _ => (1, walked.saturating_mul(48)),
    };
    (cost.max(walked).max(1), made)
}

/// The digits that a format asks for after the point, all together.
fn digits(format: Option<&Value>) -> u64 {
    let Some(Value::String(format)) = format else { return 0 };
    let digits = format.split("%.").skip(1).map(|rest| {
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if number.is_empty() { 0 } else { number.parse().unwrap_or(u64::MAX) }
    });
    digits.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn text(length: usize) -> Value {
        Value::String(Arc::new("a".repeat(length)))
    }

    #[test]
    fn what_grows_is_counted_before_it_is_made() {
        let (long, empty) = (text(60_000), text(0));
        for (name, given) in [
            ("replace", vec![&long, &empty, &long]),
            ("lists.range", vec![&Value::Int(1 << 40)]),
            ("format", vec![&Value::String(Arc::new("%.999999999f".into())), &Value::Null]),
        ] {
            let (cost, _) = of_call(name, &given);
            assert!(cost > CALL_MOST, "{name}: {cost}");
        }
        let lists: Vec<Value> = (0..3000).map(Value::Int).collect();
        let lists = Value::List(Arc::new(lists));
        for name in ["distinct", "sets.intersects"] {
            assert!(of_call(name, &[&lists, &lists]).0 > CALL_MOST, "{name}");
        }
        assert_eq!(of_call("startsWith", &[&text(10), &text(1)]).0, 4);
    }

    #[test]
    fn a_run_ends_at_its_own_limit_or_at_that_of_all() {
        let mut budget = Budget::object();
        let mut meter = Meter::of(&budget);
        assert_eq!(meter.charge(CALL_MOST), Ok(()));
        assert_eq!(meter.charge(1), Err(Exceeded::Call));
        budget.take(OBJECT_MOST - 5);
        let mut meter = Meter::of(&budget);
        assert_eq!(meter.charge(6), Err(Exceeded::Budget));
        assert_eq!(Meter::of(&Budget::object()).make(MADE_MOST + 1), Err(Exceeded::Call));
    }
}
