//! Values inside messages, as Go prints them: clients compare these texts.

use serde_json::{Number, Value};
use std::fmt::Write;

/// A string in double quotes, escaped as Go's `%q` does.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            other if printable(other) => out.push(other),
            other => escape(other, &mut out),
        }
    }
    out.push('"');
    out
}

fn escape(character: char, out: &mut String) {
    let code = u32::from(character);
    // Writing to a String can't fail.
    let _ = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Would Go print it as it is? Controls, odd spaces, and code points with no glyph are escaped.
fn printable(character: char) -> bool {
    match character {
        ' ' => true,
        '\u{ad}'
        | '\u{feff}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => false,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' | '\u{fff0}'..='\u{fffb}' => false,
        other => !other.is_control() && !other.is_whitespace(),
    }
}

/// A value inside an error: strings quoted, numbers as Go's `%v`, the rest as compact JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => go_number(number),
        other => go_json(other),
    }
}

/// As Go's `%v` prints: a float gets an exponent below 1e-4 and from 1e21.
pub(crate) fn go_number(number: &Number) -> String {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => whole.to_string(),
        (_, Some(whole), _) => whole.to_string(),
        (_, _, Some(float)) => go_float(float),
        _ => number.to_string(),
    }
}

/// As Go's `%v` prints a `float64`.
pub(crate) fn go_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float}")
}

/// Compact JSON as Go's `encoding/json` writes it: keys sorted, and `<`, `>`, `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, field)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_json(field, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    for character in Value::from(text).to_string().chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
}
