//! Metadata, selectors and bodies.

use super::{Differences, answers, told};
use atoll_apimachinery::meta::{self, NameRule};
use atoll_apimachinery::selector::{fields, labels};
use atoll_apimachinery::{names, strict};
use serde_json::Value;

fn query(path: &str, key: &str) -> Option<String> {
    let pair = path.split(['?', '&']).find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))?;
    let (mut bytes, mut rest) = (Vec::new(), pair.bytes());
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    Some(String::from_utf8(bytes).unwrap())
}

#[test]
fn selectors_are_refused_as_the_server_refuses_them() {
    let mut differences = Differences::default();
    let (mut good, mut bad) = (0, 0);
    for answer in answers("selectors") {
        let ours = match (query(answer.path(), "labelSelector"), query(answer.path(), "fieldSelector")) {
            (Some(text), _) => labels::Selector::parse(&text).err(),
            (_, Some(text)) => match fields::Selector::parse(&text) {
                // Which fields there are is the server's to say.
                Ok(selector) => {
                    let known = ["metadata.name", "metadata.namespace"];
                    if selector.terms.iter().any(|term| !known.contains(&term.field.as_str())) {
                        continue;
                    }
                    None
                }
                Err(error) => Some(error),
            },
            (None, None) => unreachable!(),
        };
        *(if ours.is_some() { &mut bad } else { &mut good }) += 1;
        let theirs = (answer.code() == 400).then(|| answer.message().to_owned());
        let ours = ours.map(|error| format!("{}{error}", prefix(&theirs)));
        differences.compare(answer.name(), &ours, &theirs);
    }
    assert!(good > 20 && bad > 20, "{good} good, {bad} bad");
}

/// What the server says before the complaint: it is about the query, not about the selector.
fn prefix(theirs: &Option<String>) -> &str {
    theirs.as_deref().and_then(|text| text.find("parsing field").map(|_| "")).unwrap_or_default()
}

#[test]
fn metadata_is_refused_as_the_server_refuses_it() {
    let mut differences = Differences::default();
    for answer in answers("metadata") {
        let mut object = answer.sent().clone();
        let rule = match object["kind"].as_str().unwrap() {
            "Namespace" | "Service" => NameRule::Label,
            "Role" => NameRule::PathSegment,
            _ => NameRule::Subdomain,
        };
        let namespaced = object["kind"] != "Namespace";
        if namespaced {
            object["metadata"]["namespace"] = "default".into();
        }
        // The server makes the name before it looks, and its random end differs.
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            let name = format!("{prefix}xxxxx");
            object["metadata"]["name"] = name.into();
        }
        // Managed fields that can't be are forgotten before the object is looked at.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let mut errors = meta::validate_named(&object["metadata"], namespaced, rule);
        errors.extend(meta::builtin_finalizers(&object["metadata"]));
        for key in object["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
            for why in names::config_key(key) {
                let path = format!("data[{key}]");
                errors.push(atoll_apimachinery::invalid::FieldError::invalid(&path, key.as_str(), why));
            }
        }
        let unlucky = |causes: Vec<String>| -> Vec<String> {
            let generated = object["metadata"]["generateName"].is_string();
            causes.into_iter().filter(|cause| !generated || !cause.contains(" metadata.name: ")).collect()
        };
        differences.compare(answer.name(), &unlucky(told(&errors)), &unlucky(answer.causes()));
    }
}

#[test]
fn bodies_are_refused_as_the_server_refuses_them() {
    let mut differences = Differences::default();
    let mut refused = 0;
    for answer in answers("bodies") {
        let Some(text) = answer.text() else { panic!("{} has no text", answer.name()) };
        if answer.name().contains("protobuf") || answer.name().contains("type of content") {
            continue;
        }
        if answer.name().starts_with("YAML") {
            let ours = strict::parse_yaml(text.as_bytes());
            let unreadable = answer.message().contains("unrecognized");
            differences.compare(answer.name(), &ours.is_err(), &unreadable);
            let doubled = answer.message().contains("already set in map");
            differences.compare(answer.name(), &ours.is_ok_and(|(_, doubled)| !doubled.is_empty()), &doubled);
            continue;
        }
        let theirs = answer
            .message()
            .split_once("json parse error: ")
            .map(|(_, rest)| rest.rsplit_once(" (").unwrap().0);
        match strict::parse(text.as_bytes()) {
            Err(error) => {
                refused += 1;
                differences.compare(answer.name(), &error.to_string().as_str(), &theirs.unwrap_or_default());
            }
            Ok((value, doubled)) => {
                differences.compare(answer.name(), &theirs.is_some(), &!value.is_object());
                let told: Vec<String> =
                    doubled.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
                if !told.is_empty() {
                    let said = answer.message().split_once("strict decoding error: ").unwrap().1;
                    differences.compare(answer.name(), &told.join(", ").as_str(), &said);
                }
            }
        }
    }
    assert!(refused > 8, "only {refused} were refused");
    let surrogate = answers("bodies").into_iter().find(|answer| answer.name() == "an odd surrogate").unwrap();
    let (ours, _) = strict::parse(surrogate.text().unwrap().as_bytes()).unwrap();
    assert_eq!(ours["data"], surrogate.answer()["data"]);
    assert_ne!(ours["data"], Value::Null);
}
