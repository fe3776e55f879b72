//! What a real API server answers: requests in a file, its answers in another.
//!
//! ```text
//!   cases.yaml ──▶ one request after the other ──▶ answers.json
//! ```
//! Pure tests compare what our functions say with the answers. What differs from run to run (ids, versions, times) is
//! left out before an answer is kept, but for answers that are kept whole.

use crate::error::{Error, Reading, Result};
use base64::Engine;
use http::{HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a request that waits for something is repeated.
const PATIENCE: Duration = Duration::from_secs(30);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// One request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is tried.
    name: String,
    /// Method and path.
    request: String,
    /// The body.
    body: Option<Value>,
    /// The body, where it is not JSON.
    text: Option<String>,
    /// Its `Content-Type`, when it is not JSON.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// What is wanted, when it is not JSON: `table` or `protobuf`.
    accept: Option<String>,
    /// Asked again until the answer has this code: the server needs time to learn what was written before.
    until: Option<u16>,
    /// Prepares or clears away: its answer is not kept.
    #[serde(default)]
    setup: bool,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Of the case.
    pub name: String,
    /// Method and path.
    pub request: String,
    /// What was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// What was sent, where it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The HTTP status.
    pub code: u16,
    /// `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The answer's body.
    pub answer: Value,
    /// The same in protobuf, in base64: both are kept whole, and differ from run to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protobuf: Option<String>,
}

impl Answer {
    /// Is it the same answer, as far as two runs can give the same?
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        let whole = self.protobuf.is_some() && other.protobuf.is_some();
        let unordered = |answer: &Value| {
            let mut answer = answer.clone();
            sort_causes(&mut answer);
            answer
        };
        self.code == other.code
            && (whole
                || (self.warnings == other.warnings && unordered(&self.answer) == unordered(&other.answer)))
    }
}

/// A server tells causes in no fixed order, and lists them in the message in the same one.
fn sort_causes(answer: &mut Value) {
    let Some(causes) = answer.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    causes.sort_by_key(ToString::to_string);
    if causes.len() > 1
        && let Some(answer) = answer.as_object_mut()
    {
        answer.remove("message");
    }
}

/// The case files of a folder, sorted.
pub fn cases(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).reading(folder)? {
        let path = entry.reading(folder)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Plays the cases of a file, and gives the answers.
pub async fn play(client: &kube::Client, cases: &Path) -> Result<Vec<Answer>> {
    let text = std::fs::read_to_string(cases).reading(cases)?;
    let cases: Vec<Case> = serde_saphyr::from_str(&text)
        .map_err(|error| Error::Case { what: cases.display().to_string(), why: error.to_string() })?;
    let mut answers = Vec::new();
    for case in cases {
        let answer = asked(client, &case).await?;
        if !case.setup {
            answers.push(answer);
        }
    }
    Ok(answers)
}

async fn asked(client: &kube::Client, case: &Case) -> Result<Answer> {
    let start = std::time::Instant::now();
    loop {
        let mut answer = once(client, case).await?;
        if case.until.is_some_and(|code| code != answer.code) && start.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        if case.accept.as_deref() != Some("protobuf") {
            forget(&mut answer.answer);
            if let Some(prefix) =
                case.body.as_ref().and_then(|body| body.pointer("/metadata/generateName")?.as_str())
            {
                forget_made_names(&mut answer.answer, prefix);
            }
        }
        return Ok(answer);
    }
}

async fn once(client: &kube::Client, case: &Case) -> Result<Answer> {
    let wanted = match case.accept.as_deref() {
        Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
        _ => "application/json",
    };
    let (code, warnings, bytes) = send(client, case, wanted).await?;
    let mut answer = Answer {
        name: case.name.clone(),
        request: case.request.clone(),
        body: case.body.clone(),
        text: case.text.clone(),
        code,
        warnings,
        answer: serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into()),
        protobuf: None,
    };
    if case.accept.as_deref() == Some("protobuf") {
        let (_, _, bytes) = send(client, case, PROTOBUF).await?;
        answer.protobuf = Some(base64::engine::general_purpose::STANDARD.encode(bytes));
    }
    Ok(answer)
}

async fn send(
    client: &kube::Client,
    case: &Case,
    accept: &'static str,
) -> Result<(u16, Vec<String>, Vec<u8>)> {
    let broken = |why: String| Error::Case { what: format!("case `{}`", case.name), why };
    let (method, path) = case.request.split_once(' ').ok_or_else(|| broken("no method".to_owned()))?;
    let body = match (&case.body, &case.text) {
        (Some(body), _) => body.to_string().into_bytes(),
        (None, Some(text)) => text.clone().into_bytes(),
        (None, None) => Vec::new(),
    };
    let kind = case.kind.as_deref().unwrap_or("application/json");
    let mut request = Request::new(Body::from(body));
    *request.method_mut() =
        Method::from_bytes(method.as_bytes()).map_err(|error| broken(error.to_string()))?;
    *request.uri_mut() = path.parse().map_err(|error| broken(format!("{error}")))?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
    let kind = HeaderValue::from_str(kind).map_err(|error| broken(error.to_string()))?;
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    let response = client.send(request).await.map_err(|error| broken(error.to_string()))?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all(header::WARNING).iter();
    let warnings = warnings.filter_map(|warning| warning.to_str().ok()).map(str::to_owned).collect();
    let bytes = response.into_body().collect().await.map_err(|error| broken(error.to_string()))?;
    Ok((code, warnings, bytes.to_bytes().to_vec()))
}

/// Takes out what no second run gives again.
fn forget(answer: &mut Value) {
    if answer.get("kind").and_then(Value::as_str) == Some("Table") {
        forget_ages(answer);
    }
    forget_made_names(answer, "kube-api-access-");
    forget_ids(answer);
}

fn forget_ids(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            forget_fields(fields);
            fields.values_mut().for_each(forget_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_ids),
        Value::String(text) => *text = without_ids(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Ids of objects stand in labels too.
fn without_ids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_id = |part: &str| {
        part.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let at = (0..text.len()).find(|at| text.get(*at..at + LENGTH).is_some_and(is_id));
    match at {
        Some(at) => format!("{}<id>{}", &text[..at], without_ids(&text[at + LENGTH..])),
        None => text.to_owned(),
    }
}

/// The server ends a name that it makes with five random characters.
fn forget_made_names(answer: &mut Value, prefix: &str) {
    match answer {
        Value::String(text) => {
            let mut masked = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find(prefix) {
                let (before, after) = rest.split_at(at + prefix.len());
                masked.push_str(before);
                let random =
                    after.get(..5).is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                masked.push_str(if random { "<any>" } else { "" });
                rest = if random { &after[5..] } else { after };
            }
            *text = masked + rest;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget_made_names(item, prefix)),
        Value::Object(fields) => fields.values_mut().for_each(|field| forget_made_names(field, prefix)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn forget_fields(fields: &mut Map<String, Value>) {
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "lastPhaseTransitionTime",
        "managedFields",
        "selfLink",
    ] {
        if fields.get(field).is_some_and(|value| !value.is_object()) {
            fields.remove(field);
        }
    }
}

/// Ages in a Table are masked; descriptions of columns are prose, which is not compared.
fn forget_ages(table: &mut Value) {
    const AGES: &[&str] = &["Age", "Created At", "Last Seen", "First Seen", "Last Schedule", "Duration"];
    let mut masked = Vec::new();
    for column in table.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = column.get("name").and_then(Value::as_str).unwrap_or_default();
        masked.push(AGES.contains(&name));
        column["description"] = "".into();
    }
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        let cells = row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten();
        for (cell, _) in cells.zip(&masked).filter(|(_, masked)| **masked) {
            *cell = "<age>".into();
        }
    }
}
