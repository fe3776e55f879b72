//! Bodies and patches: whatever the server takes is sound. It reads back as it was answered, and writing it once more
//! changes nothing.

use crate::server::{Answer, Server};
use serde_json::Value;

const JSON: &str = "application/json";
/// Where the objects are that are patched, and what they are at first.
const PATCHED: &[(&str, &str)] = &[
    (
        "/api/v1/namespaces/default/configmaps",
        r#"{"metadata":{"labels":{"a":"b"},"finalizers":["fuzz.io/a"]},"data":{"a":"b","c":"d"}}"#,
    ),
    (
        "/api/v1/namespaces/default/services",
        r#"{"spec":{"selector":{"a":"b"},"ports":[{"name":"a","port":80},{"name":"b","port":81,"protocol":"UDP"}]}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a","ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"}]},{"name":"b","image":"b"}]}}}}"#,
    ),
    (
        "/apis/fuzz.io/v1/namespaces/default/things",
        r#"{"apiVersion":"fuzz.io/v1","kind":"Thing","spec":{"size":2,"set":["a"],"map":[{"key":"a","value":"1"}],"any":{"x":[1]}}}"#,
    ),
];

/// `<path> <content type>`, then the body.
fn read(input: &[u8]) -> Option<(&str, &str, &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let (path, kind) = std::str::from_utf8(&input[..end]).ok()?.split_once(' ')?;
    Some((path, kind, &input[end + 1..]))
}

/// Creates what the input says.
pub(crate) fn create(server: &Server, input: &[u8]) -> Result<(), String> {
    let Some((path, kind, body)) = read(input) else { return Ok(()) };
    let made = server.ask("POST", path, kind, body.to_vec())?;
    let Some(name) = made.body["metadata"]["name"].as_str().filter(|_| made.code.is_success()) else {
        return Ok(());
    };
    let path = format!("{path}/{name}");
    is_sound(server, &path, &made)?;
    server.ask("DELETE", &path, JSON, br#"{"gracePeriodSeconds":0}"#.to_vec()).map(|_| ())
}

/// Patches an object: the input's path is that of its resource.
pub(crate) fn patch(server: &Server, input: &[u8]) -> Result<(), String> {
    let Some((path, kind, patch)) = read(input) else { return Ok(()) };
    let Some((_, object)) = PATCHED.iter().find(|(known, _)| *known == path) else { return Ok(()) };
    let mut object: Value = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let name = server.name();
    object["metadata"]["name"] = name.as_str().into();
    let made = server.ask("POST", path, JSON, object.to_string().into_bytes())?;
    if !made.code.is_success() {
        return Err(format!("the object to patch is refused: {}", made.body));
    }
    let path = format!("{path}/{name}");
    let parameters = if kind.contains("apply") { "?fieldManager=fuzz&force=true" } else { "" };
    let patched = server.ask("PATCH", &format!("{path}{parameters}"), kind, patch.to_vec())?;
    if patched.code.is_success() {
        is_sound(server, &path, &patched)?;
    } else {
        let read = server.ask("GET", &path, "", Vec::new())?;
        if read.body != made.body {
            return Err(format!("a refused patch changed {} to {}", made.body, read.body));
        }
    }
    server.ask("DELETE", &path, JSON, Vec::new()).map(|_| ())
}

/// What was answered is there, and writing it once more changes nothing.
fn is_sound(server: &Server, path: &str, answer: &Answer) -> Result<(), String> {
    let read = server.ask("GET", path, "", Vec::new())?;
    if read.body != answer.body {
        return Err(format!("answered {} and keeps {}", answer.body, read.body));
    }
    let again = server.ask("PUT", path, JSON, read.body.to_string().into_bytes())?;
    if again.body != read.body {
        return Err(format!("{} written once more is {}", read.body, again.body));
    }
    Ok(())
}
