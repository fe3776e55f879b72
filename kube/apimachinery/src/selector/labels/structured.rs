//! The structured form: `matchLabels` and `matchExpressions`.

use super::{Operator, Requirement, Selector};
use crate::selector::SelectorError;
use serde_json::Value;

/// Reads a `LabelSelector`. An empty one selects everything; an absent one, by convention, nothing: that is the
/// caller's to know.
///
/// # Errors
/// Where an operator is unknown, or has not the values that it needs.
pub fn from_object(selector: &Value) -> Result<Selector, SelectorError> {
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let values = vec![value.as_str().unwrap_or_default().to_owned()];
        requirements.push(Requirement { key: key.clone(), operator: Operator::Equals, values });
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        requirements.push(requirement(expression)?);
    }
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Selector { requirements })
}

fn requirement(expression: &Value) -> Result<Requirement, SelectorError> {
    let named = expression.get("operator").and_then(Value::as_str).unwrap_or_default();
    let operator = match named {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            let quoted = crate::invalid::quoted(other);
            return Err(SelectorError(format!("{quoted} is not a valid label selector operator")));
        }
    };
    let key = expression.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed = expression.get("values").and_then(Value::as_array);
    let mut values: Vec<String> =
        listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    values.sort_unstable();
    let wants = matches!(operator, Operator::In | Operator::NotIn);
    if wants == values.is_empty() {
        let why = if wants {
            "for 'in', 'notin' operators, values set can't be empty"
        } else {
            "values set must be empty for exists and does not exist"
        };
        let all = Value::from(values);
        return Err(SelectorError(crate::invalid::FieldError::invalid("values", all, why).to_string()));
    }
    Ok(Requirement { key, operator, values })
}
