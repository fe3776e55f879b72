//! Golden answers: recorded from a real kube-apiserver, compared on every server.
//!
//! A recording holds the answers of one case. What differs from run to run is masked: times, UIDs, resource versions
//! (numbered by first appearance, so that "did not change" is on the recording too) and the run's own names.
//! With `ATOLL_CONTRACT_RECORD=1` a real server's answers are written instead of compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::target::{Call, Target};

/// The answers of one case so far.
pub(crate) struct Recording {
    target: Target,
    steps: Vec<Value>,
    mask: Mask,
}

impl Recording {
    pub(crate) fn new(target: &Target) -> Self {
        let mask = Mask { run: target.run.clone(), seen: BTreeMap::new() };
        Self { target: target.clone(), steps: Vec::new(), mask }
    }

    /// Sends `call` and keeps the answer.
    pub(crate) async fn send(&mut self, call: Call) -> Answer {
        let answer = self.target.send(call).await;
        self.keep(&answer);
        answer
    }

    /// Keeps an answer.
    pub(crate) fn keep(&mut self, answer: &Answer) {
        let warnings: Vec<_> = answer.warnings().iter().map(|text| self.mask.text(text)).collect();
        let mut step = json!({
            "asked": self.mask.text(&answer.asked),
            "code": answer.code,
            "body": ordered(self.mask.value("", &answer.body)),
        });
        if !warnings.is_empty() {
            step["warnings"] = json!(warnings);
        }
        self.steps.push(step);
    }

    /// Compares with what a real server answered, or records it.
    #[track_caller]
    pub(crate) fn finish(self) {
        let path = self.path();
        let got = Value::Array(self.steps);
        let record = std::env::var_os("ATOLL_CONTRACT_RECORD").is_some_and(|value| value == "1");
        if record && self.target.real {
            std::fs::create_dir_all(path.parent().expect("it lies in a folder"))
                .expect("a folder can be made");
            std::fs::write(&path, format!("{:#}\n", sorted(&got))).expect("a golden file can be written");
            return;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; record it with ATOLL_CONTRACT_RECORD=1 on a real server", path.display())
        });
        let want: Value = serde_json::from_str(&text).expect("golden files are JSON");
        if want != got {
            panic!("differs from {}\n{}", path.display(), differences(&want, &got).join("\n"));
        }
    }

    fn path(&self) -> PathBuf {
        let (file, case) = self.target.case.split_once("::").expect("a case is called file::case");
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        golden.join(file).join(format!("{case}.json"))
    }
}

struct Mask {
    run: String,
    seen: BTreeMap<String, usize>,
}

impl Mask {
    fn value(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                map.iter().map(|(key, value)| (self.text(key), self.value(key, value))).collect()
            }
            Value::Array(list) if key == "managedFields" => {
                // They are sorted by time too, and time goes on.
                let mut entries: Vec<_> = list.iter().map(|entry| self.value("", entry)).collect();
                entries.sort_by_key(|entry| {
                    ["operation", "manager", "subresource", "apiVersion"].map(|key| entry[key].to_string())
                });
                Value::Array(entries)
            }
            Value::Array(list) => list.iter().map(|value| self.value("", value)).collect(),
            Value::String(text) if matches!(key, "resourceVersion" | "uid") => {
                if text.is_empty() {
                    return json!("");
                }
                let next = self.seen.keys().filter(|seen| seen.starts_with(key)).count() + 1;
                let number = *self.seen.entry(format!("{key} {text}")).or_insert(next);
                json!(format!("<{key} {number}>"))
            }
            Value::String(text) => json!(self.text(text)),
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.replace(&self.run, "<run>");
        for (seen, number) in &self.seen {
            let (key, value) = seen.split_once(' ').expect("key and value");
            if key == "uid" {
                text = text.replace(value, &format!("<uid {number}>"));
            }
        }
        without_times(&text)
    }
}

/// What is left of an error's text that is Go's own: a struct or a patch as Go prints it, a parser's words.
fn without_go(message: &str, field: &str) -> Option<String> {
    if field == "patch" {
        return Some("Invalid value: <the patch>: <why>".to_owned());
    }
    let (_, why) = message.strip_prefix("Invalid value: {\"Rule\":")?.split_once("}: ")?;
    let why = why.split_once("compilation failed: ").map_or(why, |_| "compilation failed: <why>");
    Some(format!("Invalid value: <the rule>: {why}"))
}

/// A real server tells several errors in any order: it walks through Go's maps.
fn ordered(mut body: Value) -> Value {
    let mut message = body["message"].as_str().unwrap_or_default().to_owned();
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return body };
    for cause in causes.iter_mut() {
        let said = cause["message"].as_str().unwrap_or_default().to_owned();
        if let Some(text) = without_go(&said, cause["field"].as_str().unwrap_or_default()) {
            message = message.replace(&said, &text);
            cause["message"] = json!(text);
        }
    }
    causes.sort_by_key(|cause| ["field", "message"].map(|key| cause[key].to_string()));
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let lines: Vec<_> =
        causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect();
    if let Some((begin, _)) = message.clone().split_once(" is invalid: [").filter(|_| lines.len() > 1) {
        message = format!("{begin} is invalid: [{}]", lines.join(", "));
    }
    body["message"] = json!(message);
    body
}

/// Replaces every `2026-11-15T12:00:00Z`, also with microseconds.
fn without_times(text: &str) -> String {
    let shape = "dddd-dd-ddTdd:dd:dd";
    let fits = |part: &str| {
        part.len() == shape.len()
            && part.bytes().zip(shape.bytes()).all(|(byte, want)| match want {
                b'd' => byte.is_ascii_digit(),
                want => byte == want,
            })
    };
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(time) = rest.get(..shape.len()).filter(|part| fits(part)) {
            let after = rest[time.len()..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            if let Some(after) = after.strip_prefix('Z') {
                result.push_str("<time>");
                rest = after;
                continue;
            }
        }
        result.push(first);
        rest = &rest[first.len_utf8()..];
    }
    result
}

/// Keys in order, whatever map the JSON library was built with.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let ordered: BTreeMap<_, _> =
                map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            ordered.into_iter().collect()
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// One line per place at which the two differ.
pub(crate) fn differences(want: &Value, got: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    differ("", want, got, &mut lines);
    lines
}

fn differ(path: &str, want: &Value, got: &Value, lines: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, want) in a {
                match b.get(key) {
                    Some(got) => differ(&format!("{path}/{key}"), want, got, lines),
                    None => lines.push(format!("  {path}/{key}: missing, wanted {want}")),
                }
            }
            for (key, got) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                lines.push(format!("  {path}/{key}: too much: {got}"));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (want, got)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}/{index}"), want, got, lines);
            }
        }
        _ if want == got => {}
        _ => {
            lines.push(format!("  {path}: wanted {want}\n  {:width$}  got    {got}", "", width = path.len()));
        }
    }
}
