//! An object in readable text: what it is, what is wanted, how it is, what happened to it. For any kind. Pure.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{conditions_table, text};
use crate::output;

/// What stands at the top, or is of no use to people.
const TOP: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What happened to an object, as far as that is known.
pub(crate) enum Events {
    /// These, as the API has them.
    Known(Vec<Value>),
    /// They could not be read, because of this.
    Unknown(String),
}

/// The whole text; `cluster` if it was asked for by name.
pub(crate) fn describe(object: &Value, cluster: Option<&str>, events: &Events, now: Timestamp) -> String {
    let mut out = head(object, cluster, now);
    let secret = text(object, "/kind") == "Secret" && text(object, "/apiVersion") == "v1";
    for (key, value) in object.as_object().into_iter().flatten() {
        if TOP.contains(&key.as_str()) {
            continue;
        }
        match value {
            // What is secret does not get onto a screen by the way.
            Value::Object(data) if secret && (key == "data" || key == "stringData") => {
                let sizes = data.iter().map(|(key, value)| (key.clone(), size(value).into())).collect();
                put(&title(key), &Value::Object(sizes), 0, &mut out);
            }
            _ => put(&title(key), value, 0, &mut out),
        }
    }
    if let Some(Value::Object(status)) = object.get("status") {
        let mut status = status.clone();
        status.remove("conditions");
        if !status.is_empty() {
            put("Status", &Value::Object(status), 0, &mut out);
        }
    }
    if let Some(table) = conditions_table(object) {
        out.push_str("Conditions:\n");
        out.push_str(&indented(&table));
    }
    out.push_str(&happened(events, now));
    out
}

fn head(object: &Value, cluster: Option<&str>, now: Timestamp) -> String {
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let mut row = |title, lines: Vec<String>| rows.push((title, lines));
    let line = |pointer: &str| {
        let text = plain(text(object, pointer));
        if text.is_empty() { Vec::new() } else { vec![text] }
    };
    row("Name", line("/metadata/name"));
    row("Namespace", line("/metadata/namespace"));
    row("Cluster", cluster.map(str::to_owned).into_iter().collect());
    row("Kind", vec![format!("{} ({})", text(object, "/kind"), text(object, "/apiVersion"))]);
    for (title, pointer) in
        [("Created", "/metadata/creationTimestamp"), ("Deleted", "/metadata/deletionTimestamp")]
    {
        let at = text(object, pointer);
        let age = at.parse::<Timestamp>().map(|at| format!(" ({} ago)", since(at, now))).unwrap_or_default();
        row(title, if at.is_empty() { Vec::new() } else { vec![format!("{}{age}", plain(at))] });
    }
    let pairs = |pointer: &str, sign: &str| -> Vec<String> {
        let map = object.pointer(pointer).and_then(Value::as_object);
        let pair = |(key, value): (&String, &Value)| format!("{}{sign}{}", plain(key), scalar(value));
        map.into_iter().flatten().map(pair).collect()
    };
    let none = |list: Vec<String>| if list.is_empty() { vec!["<none>".to_owned()] } else { list };
    row("Labels", none(pairs("/metadata/labels", "=")));
    row("Annotations", none(pairs("/metadata/annotations", ": ")));
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = |one: &Value| format!("{}/{}", plain(text(one, "/kind")), plain(text(one, "/name")));
    row("Owners", owners.into_iter().flatten().map(owner).collect());
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    row("Finalizers", finalizers.into_iter().flatten().map(scalar).collect());
    let mut out = String::new();
    for (title, lines) in rows {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { format!("{title}:") } else { String::new() };
            out.push_str(format!("{title:<14}{line}").trim_end());
            out.push('\n');
        }
    }
    out
}

/// A field and what is in it, by indentation.
fn put(key: &str, value: &Value, depth: usize, out: &mut String) {
    let margin = "  ".repeat(depth);
    let key = format!("{margin}{}:", plain(key));
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push_str(&format!("{key}\n"));
            fields(map, depth + 1, out);
        }
        Value::Array(list) if list.iter().any(|one| one.is_object() || one.is_array()) => {
            out.push_str(&format!("{key}\n"));
            list.iter().for_each(|one| item(one, depth + 1, out));
        }
        Value::Array(list) if !list.is_empty() => {
            let list: Vec<String> = list.iter().map(scalar).collect();
            out.push_str(&format!("{key} {}\n", list.join(", ")));
        }
        Value::String(text) if text.trim_end().contains('\n') => {
            out.push_str(&format!("{key}\n"));
            for line in text.trim_end().lines() {
                out.push_str(format!("{margin}  {}", plain(line)).trim_end());
                out.push('\n');
            }
        }
        other => out.push_str(format!("{key} {}\n", scalar(other)).as_str()),
    }
}

fn fields(map: &Map<String, Value>, depth: usize, out: &mut String) {
    for (key, value) in map {
        put(key, value, depth, out);
    }
}

/// One of a list: a dash before its first line.
fn item(value: &Value, depth: usize, out: &mut String) {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => fields(map, depth + 1, &mut text),
        Value::Array(list) => list.iter().for_each(|one| item(one, depth + 1, &mut text)),
        other => text.push_str(&format!("{}{}\n", "  ".repeat(depth + 1), scalar(other))),
    }
    let margin = "  ".repeat(depth);
    out.push_str(&format!("{margin}- {}", text.trim_start_matches(' ')));
}

/// What has no parts, in one line.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        Value::Null => "<none>".to_owned(),
        Value::Array(list) if list.is_empty() => "<none>".to_owned(),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        other => plain(&other.to_string()),
    }
}

/// Control characters do not reach the terminal.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn title(key: &str) -> String {
    let mut letters = key.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The size of what a base64 text holds.
fn size(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    format!("{} bytes", (text.len() / 4 * 3).saturating_sub(padding))
}

fn since(at: Timestamp, now: Timestamp) -> String {
    output::age(now.as_second() - at.as_second())
}

fn happened(events: &Events, now: Timestamp) -> String {
    let list = match events {
        Events::Unknown(why) => return format!("Events:       <unknown> ({})\n", plain(why)),
        Events::Known(list) if list.is_empty() => return "Events:       <none>\n".to_owned(),
        Events::Known(list) => list,
    };
    let mut dated: Vec<(Option<Timestamp>, &Value)> = list.iter().map(|one| (last_seen(one), one)).collect();
    dated.sort_by_key(|(at, _)| *at);
    let rows = dated.into_iter().map(|(at, event)| {
        let count = event["count"].as_i64().or_else(|| event.pointer("/series/count")?.as_i64()).unwrap_or(1);
        let age = at.map_or_else(|| "<unknown>".to_owned(), |at| since(at, now));
        let from = [text(event, "/source/component"), text(event, "/reportingComponent")];
        let from = from.into_iter().find(|from| !from.is_empty()).unwrap_or_default();
        let message = text(event, "/message").trim().replace('\n', " ");
        vec![
            plain(text(event, "/type")),
            plain(text(event, "/reason")),
            if count > 1 { format!("{age} (x{count})") } else { age },
            plain(from),
            plain(&message),
        ]
    });
    let table = output::table(&["TYPE", "REASON", "AGE", "FROM", "MESSAGE"], &rows.collect::<Vec<_>>());
    format!("Events:\n{}", indented(&table))
}

fn last_seen(event: &Value) -> Option<Timestamp> {
    let at = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    at.into_iter().find_map(|pointer| text(event, pointer).parse().ok())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2027-01-15T08:10:00Z".parse().unwrap()
    }

    #[test]
    fn an_object_is_told_from_top_to_bottom() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2027-01-15T08:00:00Z",
                "labels": {"app": "web", "tier": "front"}, "uid": "u", "finalizers": ["example.com/stay"]},
            "spec": {"replicas": 2, "paused": false, "selector": {}, "template": {"containers": [
                {"name": "web", "args": ["--port", "80"], "ports": [{"containerPort": 80}]}]}},
            "status": {"readyReplicas": 1, "conditions": [
                {"type": "Available", "status": "False", "reason": "Few", "message": "one of two"}]},
        });
        let events = Events::Known(vec![
            json!({"type": "Normal", "reason": "Scaled", "message": "to 2\n", "count": 3,
                "lastTimestamp": "2027-01-15T08:09:00Z", "source": {"component": "deployment-controller"}}),
            json!({"type": "Warning", "reason": "Early", "message": "a\u{1b}[31mb", "eventTime": "2027-01-15T08:05:00.000000Z",
                "reportingComponent": "c"}),
        ]);
        let want = "\
Name:         web
Namespace:    shop
Cluster:      paris
Kind:         Deployment (apps/v1)
Created:      2027-01-15T08:00:00Z (10m ago)
Labels:       app=web
              tier=front
Annotations:  <none>
Finalizers:   example.com/stay
Spec:
  paused: false
  replicas: 2
  selector: {}
  template:
    containers:
      - args: --port, 80
        name: web
        ports:
          - containerPort: 80
Status:
  readyReplicas: 1
Conditions:
  TYPE        STATUS   REASON   MESSAGE
  Available   False    Few      one of two
Events:
  TYPE      REASON   AGE        FROM                    MESSAGE
  Warning   Early    5m         c                       a [31mb
  Normal    Scaled   60s (x3)   deployment-controller   to 2
";
        assert_eq!(describe(&object, Some("paris"), &events, now()), want);
    }

    #[test]
    fn what_is_secret_is_counted_and_what_is_long_is_indented() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
            "data": {"key": "c2VjcmV0", "none": ""}});
        let said = describe(&secret, None, &Events::Known(Vec::new()), now());
        assert!(
            said.contains("Data:\n  key: 6 bytes\n  none: 0 bytes\nType: Opaque\nEvents:       <none>\n"),
            "{said}"
        );
        assert!(!said.contains("c2VjcmV0"));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"f": "a\n  b\n"}});
        let said = describe(&map, None, &Events::Unknown("may not".to_owned()), now());
        assert!(said.contains("Data:\n  f:\n    a\n      b\nEvents:       <unknown> (may not)\n"), "{said}");
    }
}
