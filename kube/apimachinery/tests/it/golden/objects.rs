//! Objects of a CRD, and what a policy says about objects.

use super::{Answer, Differences, answers, told};
use atoll_apimachinery::admission::{Policy, Request, evaluate};
use atoll_apimachinery::schema::{self, Rules, Schema};
use atoll_apimachinery::{invalid, meta, patch, strict};
use serde_json::{Value, json};

fn schema_of(definition: &Value) -> Schema {
    schema::parse(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).unwrap()
}

/// Does what the server does with a new or changed object.
fn written(
    mut object: Value,
    old: Option<&Value>,
    schema: &Schema,
) -> Result<(Value, Vec<String>), Vec<String>> {
    let unknown = schema::prune(&mut object, schema);
    schema::default(&mut object, schema);
    let found = match old {
        Some(_) => Vec::new(),
        None => meta::validate(&object["metadata"], true),
    };
    let errors = schema::check(&object, old, schema, &Rules::compile(schema), found);
    if errors.is_empty() { Ok((object["spec"].clone(), unknown)) } else { Err(told(&errors)) }
}

#[test]
fn objects_are_filled_pruned_and_refused_as_the_server_does() {
    let mut differences = Differences::default();
    let all = answers("objects");
    let defined = schema_of(all.iter().find(|answer| answer.name() == "define").unwrap().sent());
    for answer in
        all.iter().filter(|answer| answer.0["request"].as_str().unwrap().starts_with("POST /apis/golden"))
    {
        let strictly = answer.path().contains("Strict");
        let mut object = match answer.text() {
            Some(text) => strict::parse(text.as_bytes()).unwrap().0,
            None => strict::parse(answer.sent().to_string().as_bytes()).unwrap().0,
        };
        object["metadata"]["namespace"] = "default".into();
        match written(object, None, &defined) {
            Ok((spec, unknown)) if !strictly => {
                differences.compare(answer.name(), &spec, &answer.answer()["spec"]);
                let warned: Vec<String> =
                    unknown.iter().map(|path| format!("299 - \"unknown field \\\"{path}\\\"\"")).collect();
                let theirs: Vec<String> =
                    serde_json::from_value(answer.0["warnings"].clone()).unwrap_or_default();
                differences.compare(answer.name(), &warned, &theirs);
            }
            Ok((_, unknown)) => {
                let doubled =
                    answer.text().map(|text| strict::parse(text.as_bytes()).unwrap().1).unwrap_or_default();
                let doubled = doubled.iter().map(|path| format!("duplicate field \"{path}\""));
                let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
                let ours = doubled.chain(unknown).collect::<Vec<_>>().join(", ");
                let theirs = answer.message().split_once("strict decoding error: ").unwrap().1.to_owned();
                differences.compare(answer.name(), &ours, &theirs);
            }
            Err(causes) => differences.compare(answer.name(), &causes, &answer.causes()),
        }
    }
}

/// The objects that the cases change, as the case file makes them.
fn live() -> (Value, Value) {
    let cases = std::fs::read(format!("{}/tests/golden/objects.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (cases, _) = strict::parse_yaml(&cases).unwrap();
    let body = |name: &str| {
        let mut cases = cases.as_array().unwrap().iter();
        cases.find(|case| case["name"] == name).unwrap()["body"].clone()
    };
    let stored = |mut object: Value, definition: &Value| {
        object["metadata"]["namespace"] = "default".into();
        schema::default(&mut object, &schema_of(definition));
        object
    };
    let definition = body("define");
    (stored(body("create one"), &definition), stored(body("create two"), &definition))
}

#[test]
fn changes_are_judged_against_what_was_there() {
    let mut differences = Differences::default();
    let all = answers("objects");
    let definition = all.iter().find(|answer| answer.name() == "define").unwrap().sent().clone();
    let (one, two) = live();
    let mut tight = definition.clone();
    let cases = std::fs::read(format!("{}/tests/golden/objects.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (cases, _) = strict::parse_yaml(&cases).unwrap();
    let tighten = cases.as_array().unwrap().iter().find(|case| case["name"] == "tighten").unwrap();
    tight["spec"]["versions"] = tighten["body"]["spec"]["versions"].clone();
    for answer in all.iter().filter(|answer| answer.0["request"].as_str().unwrap().starts_with("PATCH ")) {
        let (old, definition) =
            if answer.name().starts_with("tightened") { (&two, &tight) } else { (&one, &definition) };
        let object = patch::merge(old, answer.sent());
        match written(object, Some(old), &schema_of(definition)) {
            Ok((spec, _)) => differences.compare(answer.name(), &spec, &answer.answer()["spec"]),
            Err(causes) => differences.compare(answer.name(), &causes, &answer.causes()),
        }
    }
}

#[test]
fn one_error_makes_the_servers_whole_status() {
    let all = answers("objects");
    let refused = |answer: &&Answer| answer.name() == "a rule with a path";
    let answer = all.iter().find(refused).unwrap();
    let defined = schema_of(all.iter().find(|answer| answer.name() == "define").unwrap().sent());
    let mut object = answer.sent().clone();
    object["metadata"]["namespace"] = "default".into();
    let errors = schema::check(&object, None, &defined, &Rules::compile(&defined), Vec::new());
    assert_eq!(&invalid::status("golden.atoll.test", "Shape", "a", &errors), answer.answer());
}

#[test]
fn a_policy_says_what_it_says_on_the_server() {
    let mut differences = Differences::default();
    let all = answers("policies");
    let sent = |name: &str| all.iter().find(|answer| answer.name() == name).unwrap().sent().clone();
    let policy = Policy::compile(&sent("the policy")).unwrap();
    let namespace = json!({"metadata": {"name": "golden-policy", "labels": {
        "kubernetes.io/metadata.name": "golden-policy"}}});
    for answer in all.iter().filter(|answer| answer.path().contains("/configmaps")) {
        let mut binding = sent("the binding");
        if answer.name().contains("warning") {
            binding["spec"]["validationActions"] = json!(["Warn", "Audit"]);
        }
        let request = Request {
            operation: "CREATE",
            version: "v1",
            kind: "ConfigMap",
            resource: "configmaps",
            name: "a",
            namespace: "golden-policy",
            object: Some(answer.sent()),
            namespace_object: Some(&namespace),
            dry_run: true,
            ..Request::default()
        };
        let outcome = evaluate(&policy, &binding, None, &request);
        let ours = outcome.denials.first().map(|denial| {
            let message = format!("configmaps \"a\" is forbidden: {}", denial.message);
            (u64::from(denial.code), denial.reason.clone(), message)
        });
        let theirs = (answer.code() >= 400).then(|| {
            let reason = answer.answer()["reason"].as_str().unwrap_or_default().to_owned();
            (answer.code(), reason, answer.message().to_owned())
        });
        differences.compare(answer.name(), &ours, &theirs);
        let warned: Vec<String> =
            outcome.warnings.iter().map(|warning| format!("299 - {}", invalid::quoted(warning))).collect();
        let theirs: Vec<String> = serde_json::from_value(answer.0["warnings"].clone()).unwrap_or_default();
        differences.compare(answer.name(), &warned, &theirs);
    }
}
