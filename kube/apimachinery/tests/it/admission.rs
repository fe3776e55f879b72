//! Admission policies.

use atoll_apimachinery::admission::{Outcome, Policy, Request, evaluate, params_missing};
use serde_json::{Value, json};

fn policy(extra: Value) -> Policy {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]},
        "validations": [{"expression": "object.spec.replicas <= 5"}],
    });
    for (field, value) in extra.as_object().unwrap() {
        spec[field] = value.clone();
    }
    Policy::compile(&json!({"metadata": {"name": "few"}, "spec": spec})).unwrap()
}

fn bound(actions: &[&str]) -> Value {
    json!({"metadata": {"name": "all"}, "spec": {"policyName": "few", "validationActions": actions}})
}

fn created(object: &Value) -> Request<'_> {
    Request {
        operation: "CREATE",
        group: "apps",
        version: "v1",
        kind: "Deployment",
        resource: "deployments",
        name: "web",
        namespace: "shop",
        object: Some(object),
        ..Request::default()
    }
}

fn messages(outcome: &Outcome) -> Vec<&str> {
    outcome.denials.iter().map(|denial| denial.message.as_str()).collect()
}

const PREFIX: &str = "ValidatingAdmissionPolicy 'few' with binding 'all' denied request: ";

#[test]
fn a_broken_rule_refuses_warns_and_audits_as_bound() {
    let (few, many) = (json!({"spec": {"replicas": 5}}), json!({"spec": {"replicas": 6}}));
    let asked = policy(json!({}));
    assert_eq!(evaluate(&asked, &bound(&["Deny"]), None, &created(&few)), Outcome::default());
    let outcome = evaluate(&asked, &bound(&["Deny"]), None, &created(&many));
    assert_eq!(messages(&outcome), [format!("{PREFIX}failed expression: object.spec.replicas <= 5")]);
    assert_eq!((outcome.denials[0].code, outcome.denials[0].reason.as_str()), (422, "Invalid"));
    let outcome = evaluate(&asked, &bound(&["Warn", "Audit"]), None, &created(&many));
    assert!(outcome.denials.is_empty());
    assert_eq!(outcome.warnings.len(), 1);
    assert_eq!(outcome.audit.len(), 1);
}

#[test]
fn variables_params_and_messages_work_together() {
    let asked = policy(json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "most", "expression": "int(params.data.most)"},
                      {"name": "over", "expression": "object.spec.replicas - variables.most"}],
        "validations": [{"expression": "variables.over <= 0", "reason": "Forbidden",
                         "messageExpression": "string(variables.over) + ' too many'"}],
    }));
    let (object, params) = (json!({"spec": {"replicas": 7}}), json!({"data": {"most": "4"}}));
    let outcome = evaluate(&asked, &bound(&["Deny"]), Some(&params), &created(&object));
    assert_eq!(messages(&outcome), [format!("{PREFIX}3 too many")]);
    assert_eq!(outcome.denials[0].code, 403);
    let mut binding = bound(&["Deny"]);
    binding["spec"]["paramRef"] = json!({"name": "limits", "parameterNotFoundAction": "Deny"});
    assert_eq!(params_missing(&asked, &binding).denials.len(), 1);
}

#[test]
fn a_failing_expression_does_what_the_failure_policy_says() {
    let object = json!({"spec": {}});
    let outcome = evaluate(&policy(json!({})), &bound(&["Deny"]), None, &created(&object));
    let expected =
        format!("{PREFIX}expression 'object.spec.replicas <= 5' resulted in error: no such key: replicas");
    assert_eq!(messages(&outcome), [expected]);
    let lenient = policy(json!({"failurePolicy": "Ignore"}));
    assert_eq!(evaluate(&lenient, &bound(&["Deny"]), None, &created(&object)), Outcome::default());
}

#[test]
fn only_what_matches_is_judged() {
    let object = json!({"metadata": {"labels": {"tier": "test"}}, "spec": {"replicas": 9}});
    let namespace = json!({"metadata": {"name": "shop", "labels": {"env": "prod"}}});
    let request = Request { namespace_object: Some(&namespace), ..created(&object) };
    let judged = |extra: Value, request: &Request<'_>| {
        !evaluate(&policy(extra), &bound(&["Deny"]), None, request).denials.is_empty()
    };
    let rules = |rule: Value| json!({"resourceRules": [rule]});
    let all = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    assert!(judged(json!({}), &request));
    assert!(judged(json!({"matchConstraints": rules(all.clone())}), &request));
    assert!(!judged(json!({}), &Request { operation: "DELETE", ..request }));
    assert!(!judged(json!({}), &Request { subresource: "scale", ..request }));
    assert!(!judged(
        json!({"matchConstraints": rules(all.clone())}),
        &Request { subresource: "scale", ..request }
    ));
    for (field, selector, expected) in [
        ("namespaceSelector", json!({"matchLabels": {"env": "prod"}}), true),
        ("namespaceSelector", json!({"matchLabels": {"env": "dev"}}), false),
        (
            "objectSelector",
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]}),
            false,
        ),
        ("objectSelector", json!({"matchLabels": {"tier": "test"}}), true),
    ] {
        let mut constraints = rules(all.clone());
        constraints[field] = selector;
        assert_eq!(judged(json!({"matchConstraints": constraints}), &request), expected, "{field}");
    }
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    assert!(!judged(
        condition("request.userInfo.username == 'root'"),
        &Request { user: Some(&json!({"username": "anna"})), ..request }
    ));
    assert!(judged(condition("request.operation == 'CREATE' && request.resource.group == 'apps'"), &request));
}

#[test]
fn a_policy_that_does_not_compile_says_where() {
    let broken = json!({"metadata": {"name": "x"}, "spec": {"validations": [
        {"expression": "object.spec.("}, {"expression": "nobody.spec == 1"}, {"expression": "params.x == 1"}]}});
    let errors = Policy::compile(&broken).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.validations[0].expression",
            "spec.validations[1].expression",
            "spec.validations[2].expression"
        ]
    );
}
