//! Admission policies: CEL that refuses, warns or only notes.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{Kind, container, deployment, grouped, map, maps, object, with};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_policy_refuses,
    a_policy_without_binding_does_nothing,
    a_policy_has_a_message_of_its_own,
    a_policy_composes_its_message,
    a_policy_gives_a_reason,
    a_policy_can_warn,
    a_policy_sees_the_old_object,
    a_policy_sees_a_deletion,
    a_policy_sees_the_request,
    a_policy_has_variables,
    a_policy_has_conditions,
    a_policy_has_parameters,
    a_missing_parameter_can_be_let_pass,
    a_policy_sees_its_namespace,
    a_policy_is_for_chosen_objects,
    a_policy_is_for_custom_kinds,
    an_error_fails_by_default,
    an_error_can_be_ignored,
    a_broken_policy_is_refused,
    a_policy_must_be_of_type_bool,
    a_binding_needs_actions,
    a_policy_does_not_hinder_a_dry_run_less,
}

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A policy on config maps of the case's namespace.
fn policy(name: &str, spec: Value) -> Value {
    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": with(json!({"failurePolicy": "Fail", "matchConstraints": constraints}), spec),
    })
}

fn binding(name: &str, ns: &str, spec: Value) -> Value {
    let only = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": with(json!({"policyName": name, "validationActions": ["Deny"], "matchResources": only}), spec),
    })
}

/// Installs a policy, and waits until it refuses `probe` in the case's namespace.
async fn install(api: &Target, policy: Value, binding: Value, probe: Call) {
    api.post(POLICIES, policy).await.created();
    api.post(BINDINGS, binding).await.created();
    let in_force = |answer: &Answer| answer.code >= 400 || !answer.warnings().is_empty();
    api.until_answered(&probe.query("dryRun", "All"), in_force).await;
}

fn bad() -> Value {
    map("bad", json!({"bad": "yes"}))
}

fn not_bad() -> Value {
    json!([{"expression": "!has(object.data) || !('bad' in object.data)"}])
}

/// A policy of the case's name with this spec, in force in a namespace of its own.
async fn in_force(api: &Target, spec: Value, bound: Value) -> (String, String) {
    let (ns, name) = (api.namespace().await, api.label());
    let probe = Call::post(&maps(&ns), &bad());
    install(api, policy(&name, spec), binding(&name, &ns, bound), probe).await;
    (ns, name)
}

async fn a_policy_refuses(api: Target) {
    let (ns, name) = in_force(&api, json!({"validations": not_bad()}), json!({})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.refused(422, "Invalid", &format!("configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: failed expression: !has(object.data) || !('bad' in object.data)"));
    api.post(&maps(&ns), map("good", json!({"k": "v"}))).await.created();
    api.post(&maps("default"), with(map(&name, json!({"bad": "1"})), json!({}))).await.created();
    api.delete(&format!("{}/{name}", maps("default"))).await.ok();
}

async fn a_policy_without_binding_does_nothing(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    api.post(POLICIES, policy(&name, json!({"validations": [{"expression": "false"}]}))).await.created();
    api.post(&maps(&ns), bad()).await.created();
    api.delete(&format!("{POLICIES}/{name}")).await.ok();
}

async fn a_policy_has_a_message_of_its_own(api: Target) {
    let mut rules = not_bad();
    rules[0]["message"] = json!("nothing bad, please");
    let (ns, name) = in_force(&api, json!({"validations": rules}), json!({})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.refused(422, "Invalid", &format!("configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: nothing bad, please"));
    answer.has(
        "/details/causes/0/message",
        format!(
            "ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: nothing bad, please"
        ),
    );
}

async fn a_policy_composes_its_message(api: Target) {
    let mut rules = not_bad();
    rules[0]["messageExpression"] = json!("'found ' + object.data.bad");
    let (ns, name) = in_force(&api, json!({"validations": rules}), json!({})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.refused_with(422, "Invalid", &format!("'{name}' denied request: found yes"));
}

async fn a_policy_gives_a_reason(api: Target) {
    let mut rules = not_bad();
    rules[0]["reason"] = json!("Forbidden");
    let (ns, _) = in_force(&api, json!({"validations": rules}), json!({})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.refused_with(403, "Forbidden", "denied request: failed expression");
}

async fn a_policy_can_warn(api: Target) {
    let (ns, name) =
        in_force(&api, json!({"validations": not_bad()}), json!({"validationActions": ["Warn"]})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.created();
    assert_eq!(
        answer.warnings(),
        [format!(
            "299 - \"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': failed expression: !has(object.data) || !('bad' in object.data)\""
        )]
    );
}

async fn a_policy_sees_the_old_object(api: Target) {
    let rules = json!([
        {"expression": "!('bad' in object.data)"},
        {"expression": "oldObject == null || object.data.n >= oldObject.data.n", "message": "it may only grow"},
    ]);
    let (ns, _) = in_force(&api, json!({"validations": rules}), json!({})).await;
    api.post(&maps(&ns), map("a", json!({"n": "2"}))).await.created();
    let path = format!("{}/a", maps(&ns));
    api.merge(&path, json!({"data": {"n": "3"}})).await.ok();
    api.merge(&path, json!({"data": {"n": "1"}})).await.refused_with(
        422,
        "Invalid",
        "denied request: it may only grow",
    );
}

async fn a_policy_sees_a_deletion(api: Target) {
    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}]});
    let rules = json!([{"expression": "request.operation != 'DELETE' || !has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)", "message": "keep it"}, {"expression": "request.operation == 'DELETE' || !has(object.data) || !('bad' in object.data)"}]);
    let (ns, _) =
        in_force(&api, json!({"matchConstraints": constraints, "validations": rules}), json!({})).await;
    api.post(&maps(&ns), crate::fixtures::labelled("a", json!({"keep": "1"}))).await.created();
    let path = format!("{}/a", maps(&ns));
    api.delete(&path).await.refused_with(422, "Invalid", "denied request: keep it");
    api.merge(&path, json!({"metadata": {"labels": null}})).await.ok();
    api.delete(&path).await.ok();
}

async fn a_policy_sees_the_request(api: Target) {
    let rules = json!([{"expression": "request.name != 'bad' && request.namespace != 'x' && request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && request.userInfo.username != '' && request.dryRun in [true, false]"}]);
    let (ns, _) = in_force(&api, json!({"validations": rules}), json!({})).await;
    api.post(&maps(&ns), map("good", json!({}))).await.created();
    api.post(&maps(&ns), bad()).await.is(422);
}

async fn a_policy_has_variables(api: Target) {
    let spec = json!({
        "variables": [{"name": "data", "expression": "has(object.data) ? object.data : {}"}, {"name": "bad", "expression": "'bad' in variables.data"}],
        "validations": [{"expression": "!variables.bad", "messageExpression": "'bad is ' + string(variables.bad)"}],
    });
    let (ns, _) = in_force(&api, spec, json!({})).await;
    api.post(&maps(&ns), bad()).await.refused_with(422, "Invalid", "denied request: bad is true");
    api.post(&maps(&ns), map("good", json!({}))).await.created();
}

async fn a_policy_has_conditions(api: Target) {
    let spec = json!({"matchConditions": [{"name": "not-exempt", "expression": "object.metadata.name != 'exempt'"}], "validations": not_bad()});
    let (ns, _) = in_force(&api, spec, json!({})).await;
    api.post(&maps(&ns), bad()).await.is(422);
    api.post(&maps(&ns), map("exempt", json!({"bad": "yes"}))).await.created();
}

async fn a_policy_has_parameters(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    api.post(&maps(&ns), map("limits", json!({"most": "2"}))).await.created();
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "!has(object.data) || size(object.data) <= int(params.data.most)", "messageExpression": "'at most ' + params.data.most"}],
    });
    let bound = json!({"paramRef": {"name": "limits", "namespace": ns, "parameterNotFoundAction": "Deny"}});
    let large = map("large", json!({"a": "1", "b": "2", "c": "3"}));
    install(&api, policy(&name, spec), binding(&name, &ns, bound), Call::post(&maps(&ns), &large)).await;
    // It may be in force before its parameter is seen.
    let small = Call::post(&maps(&ns), &map("small", json!({"a": "1"})));
    api.until_answered(&small, |answer| answer.code == 201).await;
    api.post(&maps(&ns), large).await.refused_with(422, "Invalid", "denied request: at most 2");
}

async fn a_missing_parameter_can_be_let_pass(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "false"}]});
    let bound = json!({"paramRef": {"name": "nothing", "namespace": ns, "parameterNotFoundAction": "Deny"}});
    install(&api, policy(&name, spec), binding(&name, &ns, bound), Call::post(&maps(&ns), &bad())).await;
    api.post(&maps(&ns), bad()).await.refused_with(
        422,
        "Invalid",
        "no params found for policy binding with `Deny` parameterNotFoundAction",
    );
    api.merge(
        &format!("{BINDINGS}/{name}"),
        json!({"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}}),
    )
    .await
    .ok();
    let create = Call::post(&maps(&ns), &bad()).query("dryRun", "All");
    api.until_answered(&create, |answer| answer.code == 201).await;
}

async fn a_policy_sees_its_namespace(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let spec = json!({"validations": [{"expression": format!("namespaceObject.metadata.name == '{ns}' && !('strict' in namespaceObject.metadata.labels && 'bad' in object.data)")}]});
    api.merge(&format!("/api/v1/namespaces/{ns}"), json!({"metadata": {"labels": {"strict": "1"}}}))
        .await
        .ok();
    install(&api, policy(&name, spec), binding(&name, &ns, json!({})), Call::post(&maps(&ns), &bad())).await;
    api.post(&maps(&ns), map("good", json!({"a": "b"}))).await.created();
}

async fn a_policy_is_for_chosen_objects(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let only = json!({"matchResources": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}, "objectSelector": {"matchLabels": {"checked": "yes"}},
    }});
    let mut checked = bad();
    checked["metadata"]["labels"] = json!({"checked": "yes"});
    let rules = json!({"validations": not_bad()});
    install(&api, policy(&name, rules), binding(&name, &ns, only), Call::post(&maps(&ns), &checked)).await;
    api.post(&maps(&ns), checked).await.is(422);
    api.post(&maps(&ns), bad()).await.created();
}

async fn a_policy_is_for_custom_kinds(api: Target) {
    let (ns, name, kind) = (api.namespace().await, api.label(), Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    let constraints = json!({"resourceRules": [{"apiGroups": [kind.group], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]});
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "object.spec.size < 10", "message": "too large"}]});
    let large = kind.object("large", json!({"size": 20}));
    install(&api, policy(&name, spec), binding(&name, &ns, json!({})), Call::post(&kind.path(&ns), &large))
        .await;
    let answer = api.post(&kind.path(&ns), large).await;
    answer.refused_with(422, "Invalid", &format!("widgets.{} \"large\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: too large", kind.group));
    api.post(&kind.path(&ns), kind.object("small", json!({"size": 2}))).await.created();
}

async fn an_error_fails_by_default(api: Target) {
    let rules = json!([{"expression": "object.data.nothing == 'x'"}]);
    let (ns, name) = in_force(&api, json!({"validations": rules}), json!({})).await;
    let answer = api.post(&maps(&ns), bad()).await;
    answer.refused_with(422, "Invalid", &format!("ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing"));
}

async fn an_error_can_be_ignored(api: Target) {
    let rules = json!([{"expression": "!has(object.data) || !('bad' in object.data)"}, {"expression": "object.data.nothing == 'x'"}]);
    let (ns, _) = in_force(&api, json!({"failurePolicy": "Ignore", "validations": rules}), json!({})).await;
    api.post(&maps(&ns), bad()).await.refused_with(422, "Invalid", "failed expression: !has(object.data)");
    api.post(&maps(&ns), map("good", json!({"a": "b"}))).await.created();
}

async fn a_broken_policy_is_refused(api: Target) {
    let name = api.label();
    let answer =
        api.post(POLICIES, policy(&name, json!({"validations": [{"expression": "object.data +"}]}))).await;
    answer.refused_with(422, "Invalid", "spec.validations[0].expression: Invalid value: \"object.data +\": compilation failed: ERROR: <input>:1:14: Syntax error:");
    let answer = api.post(POLICIES, policy(&name, json!({"validations": []}))).await;
    answer.refused_with(422, "Invalid", "validations or auditAnnotations must contain at least one item");
}

async fn a_policy_must_be_of_type_bool(api: Target) {
    let name = api.label();
    let answer = api.post(POLICIES, policy(&name, json!({"validations": [{"expression": "1 + 1"}]}))).await;
    answer.refused_with(422, "Invalid", "must evaluate to bool");
}

async fn a_binding_needs_actions(api: Target) {
    let (ns, name) = ("default", api.label());
    let answer = api.post(BINDINGS, binding(&name, ns, json!({"validationActions": []}))).await;
    answer.refused_with(422, "Invalid", "spec.validationActions: Required value");
    let answer = api.post(BINDINGS, binding(&name, ns, json!({"validationActions": ["Deny", "Warn"]}))).await;
    answer.refused_with(422, "Invalid", "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
}

async fn a_policy_does_not_hinder_a_dry_run_less(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let constraints = json!({"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]});
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "object.spec.template.spec.containers.all(c, c.image.startsWith('ok/'))", "message": "only ok images"}]});
    let path = grouped("apps/v1", &ns, "deployments");
    let wrong = deployment("d", json!([container("c", "bad/i:1")]));
    install(&api, policy(&name, spec), binding(&name, &ns, json!({})), Call::post(&path, &wrong)).await;
    let answer = api.send(Call::post(&path, &wrong).query("dryRun", "All")).await;
    answer.refused_with(422, "Invalid", "deployments.apps \"d\" is forbidden: ");
    api.post(&path, deployment("d", json!([container("c", "ok/i:1")]))).await.created();
}
