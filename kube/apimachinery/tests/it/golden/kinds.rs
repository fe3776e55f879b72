//! One object of every built-in kind: in protobuf and in a Table.

use super::{Differences, answers};
use atoll_apimachinery::protobuf;
use atoll_apimachinery::table::{Include, TableConvertor};
use base64::Engine;
use serde_json::{Value, json};

#[test]
fn protobuf_means_what_json_means() {
    let mut differences = Differences::default();
    let mut decoded = 0;
    for answer in answers("kinds") {
        let Some(encoded) = answer.0["protobuf"].as_str() else { continue };
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        assert_eq!(answer.code(), 200, "{}", answer.name());
        decoded += 1;
        match protobuf::decode(&bytes) {
            Ok(ours) => differences.compare(
                answer.name(),
                &without_nulls(ours),
                &without_nulls(answer.answer().clone()),
            ),
            Err(error) => differences.compare(answer.name(), &error.to_string(), &String::new()),
        }
    }
    assert!(decoded > 40, "only {decoded} were decoded");
}

/// A null says the same as a field that is not there.
fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(|field| *field = without_nulls(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_nulls(item.take())),
        _ => {}
    }
    value
}

/// Group, version and kind, from an object.
fn kind_of(object: &Value) -> (String, String, String) {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group.to_owned(), version.to_owned(), object["kind"].as_str().unwrap().to_owned())
}

#[test]
fn tables_are_those_of_the_server() {
    const AGES: &[&str] = &["Age", "Created At", "Last Seen", "First Seen", "Last Schedule", "Duration"];
    let mut differences = Differences::default();
    let mut printed = 0;
    let custom = answers("objects").into_iter().find(|answer| answer.name() == "define").unwrap();
    let custom = custom.sent()["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap().clone();
    let live = answers("objects").into_iter().find(|answer| answer.name() == "a table of custom objects");
    for answer in answers("kinds").into_iter().chain(live) {
        if answer.answer()["kind"] != "Table" {
            continue;
        }
        let theirs = answer.answer();
        // Both kept forms of the object have lost what differs from run to run.
        let row = &theirs["rows"][0];
        let object = &row["object"];
        let whole = object["kind"] != "PartialObjectMetadata" && !object.is_null();
        if !whole && answer.name() != "a table of custom objects" {
            continue;
        }
        printed += 1;
        let convertor = if whole {
            let (group, version, kind) = kind_of(object);
            TableConvertor::builtin(&group, &version, &kind)
        } else {
            TableConvertor::custom(Some(&custom))
        };
        let mut columns = convertor.columns().to_vec();
        columns.iter_mut().for_each(|column| column["description"] = "".into());
        differences.compare(answer.name(), &Value::from(columns.clone()), &theirs["columnDefinitions"]);
        let source = if whole { object.clone() } else { live_object() };
        let mut cells = convertor.cells(&source, "2026-01-02T04:00:00Z".parse().unwrap());
        for (cell, column) in cells.iter_mut().zip(&columns) {
            if AGES.contains(&column["name"].as_str().unwrap()) {
                *cell = "<age>".into();
            }
        }
        differences.compare(answer.name(), &Value::from(cells), &row["cells"]);
    }
    assert!(printed > 40, "only {printed} were printed");
}

fn live_object() -> Value {
    let cases = std::fs::read(format!("{}/tests/golden/objects.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (cases, _) = atoll_apimachinery::strict::parse_yaml(&cases).unwrap();
    let made = cases.as_array().unwrap().iter().find(|case| case["name"] == "create one").unwrap();
    made["body"].clone()
}

#[test]
fn a_row_carries_as_much_of_the_object_as_asked_for() {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": "1"}});
    let convertor = TableConvertor::builtin("", "v1", "ConfigMap");
    let now = "2026-01-02T04:00:00Z".parse().unwrap();
    let shape = |row: &Value| {
        let object = &row["object"];
        (object["kind"].clone(), object["apiVersion"].clone(), object.get("data").is_some())
    };
    for answer in answers("kinds") {
        let include = match answer.name() {
            "a table with metadata" => Include::Metadata,
            "a table with nothing" => Include::None,
            "a config map in a table" => Include::Object,
            _ => continue,
        };
        let ours = convertor.row(&object, include, now);
        assert_eq!(shape(&ours), shape(&answer.answer()["rows"][0]), "{}", answer.name());
    }
}
