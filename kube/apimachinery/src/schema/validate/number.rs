//! Ranges and multiples.

use super::outcome::{Outcome, Problem};
use super::supported_format;
use crate::invalid::{go_float, go_number};
use crate::schema::{Kind, Schema};
use serde_json::Number;

pub(super) fn check(is: &Number, schema: &Schema, path: &str) -> Outcome {
    let limits = &schema.limits;
    let mut found = Outcome::default();
    out_of_range(is, schema, "Checked", path, &mut found);
    if let Some(factor) = &limits.multiple_of {
        out_of_range(factor, schema, "MultipleOf", path, &mut found);
        if !multiple(is, factor) {
            let detail = format!("{path} in body should be a multiple of {}", bound(is, factor));
            found.add(Problem::invalid(path, is.clone().into(), detail));
        }
    }
    if let Some(least) = &limits.minimum {
        out_of_range(least, schema, "Minimum boundary", path, &mut found);
        let (below, equal) = (less(is, least), equal(is, least));
        if below || (limits.exclusive_minimum && equal) {
            let than = if limits.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            let detail = format!("{path} in body should be {than} {}", bound(is, least));
            found.add(Problem::invalid(path, is.clone().into(), detail));
        }
    }
    if let Some(most) = &limits.maximum {
        out_of_range(most, schema, "Maximum boundary", path, &mut found);
        let (above, equal) = (less(most, is), equal(is, most));
        if above || (limits.exclusive_maximum && equal) {
            let than = if limits.exclusive_maximum { "less than" } else { "less than or equal to" };
            let detail = format!("{path} in body should be {than} {}", bound(is, most));
            found.add(Problem::invalid(path, is.clone().into(), detail));
        }
    }
    found.matches += 1;
    found
}

/// The bound as the message shows it: as whole as the value that broke it.
fn bound(is: &Number, bound: &Number) -> String {
    match (is.as_i64(), bound.as_f64()) {
        // Cut as the server cuts it.
        #[expect(clippy::cast_possible_truncation, reason = "a bound is cut to the value's type")]
        (Some(_), Some(float)) if !bound.is_i64() => (float as i64).to_string(),
        (None, Some(float)) => go_float(float),
        _ => go_number(bound),
    }
}

fn less(a: &Number, b: &Number) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a < b,
        _ => matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if a < b),
    }
}

fn equal(a: &Number, b: &Number) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if a == b),
    }
}

fn multiple(is: &Number, factor: &Number) -> bool {
    if let (Some(is), Some(factor)) = (is.as_i64(), factor.as_i64()) {
        return factor > 0 && is.checked_rem(factor) == Some(0);
    }
    let (Some(is), Some(factor)) = (is.as_f64(), factor.as_f64()) else { return true };
    let times = if factor < 1.0 { 1.0 / factor * is } else { is / factor };
    factor > 0.0 && (times - times.round()).abs() < 1e-9
}

fn out_of_range(number: &Number, schema: &Schema, what: &str, path: &str, found: &mut Outcome) {
    let format = supported_format(schema);
    let fits = match (schema.kind, format) {
        (Kind::Integer, Some("int32")) => whole(number).is_some_and(|whole| i32::try_from(whole).is_ok()),
        (Kind::Integer, _) => whole(number).is_some(),
        (Kind::Number, Some("float")) => {
            number.as_f64().is_some_and(|float| float.abs() <= f64::from(f32::MAX))
        }
        _ => true,
    };
    if fits {
        return;
    }
    let named = super::type_name(schema.kind);
    let text = match format {
        Some(format) => format!("{what} value must be of type {named} with format {format} in {path}"),
        None => format!("{what} value must be of type {named} (default format) in {path}"),
    };
    found.add(Problem::unplaced(text));
}

/// The number as a whole one, also when it was written `1.0`.
fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
        (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
    })
}
