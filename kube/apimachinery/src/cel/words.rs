//! What went wrong, in the words of the CEL that kube-apiserver uses.

use kube_cel::cel::{ExecutionError, ParseErrors};

/// Why a source text is no expression: the place is shown under the line.
pub(super) fn of_parsing(source: &str, errors: &ParseErrors) -> String {
    let one = |error: &kube_cel::cel::ParseError| {
        let (line, column) = (error.pos.0.max(1), error.pos.1.max(1));
        let text = source.lines().nth(usize::try_from(line - 1).unwrap_or_default()).unwrap_or_default();
        let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
        let said = error.msg.strip_prefix("Syntax error: ").unwrap_or(&error.msg);
        format!("ERROR: <input>:{line}:{column}: Syntax error: {said}\n | {text}\n | {dots}^")
    };
    errors.errors.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Why an expression has no value.
pub(super) fn of_running(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedIndex(..) => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(index) => match index {
            kube_cel::cel::Value::Int(at) => format!("index out of bounds: {at}"),
            _ => "index out of bounds".to_owned(),
        },
        ExecutionError::UndeclaredReference(name) => {
            format!("undeclared reference to '{name}' (in container '')")
        }
        ExecutionError::FunctionError { function, message }
            if matches!(function.as_str(), "int" | "uint" | "double") && message.contains("parse error") =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
