//! What the hub's account may not do in a member although its role lets it: policies that the member's own API server enforces
//! (`ValidatingAdmissionPolicy`, from Kubernetes 1.30). Whoever steals the hub's token cannot rewrite users' Services with it.

use atoll_api::names::kind::{about, mcs};
use atoll_api::names::{annotation, label, namespace};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
    Validation, Variable,
};

use super::rbac::{self, Owner, Propagation};

/// The group and version that a member must serve.
pub(super) const SERVED_BY: &str = "admissionregistration.k8s.io/v1";
/// The resource of it.
pub(super) const RESOURCE: &str = "validatingadmissionpolicies";

const SERVICES: &str = "atoll-hub-services";
const OBJECTS: &str = "atoll-hub-objects";
const TOKENS: &str = "atoll-hub-tokens";

/// What the fence leaves open.
pub(super) struct Gaps<'a> {
    /// Kinds that the operator lets policies bring: they are not fenced.
    pub(super) propagation: &'a Propagation,
    /// System namespaces that services may come to all the same.
    pub(super) namespaces: &'a [String],
    /// The longest life of a token, in seconds.
    pub(super) token_seconds: i64,
}

/// The policies, each with what puts it into force. All belong to the hub's role, and go with it.
pub(super) fn policies(
    hub: &str,
    owner: &Owner,
    gaps: &Gaps<'_>,
) -> Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)> {
    let open = |group: &str, resource: &str| gaps.propagation.grants(group, resource);
    let mut fenced = Vec::new();
    if !open("", "services") {
        let rules = vec![writes("", &["services"])];
        let validations = vec![
            system_namespaces(gaps.namespaces),
            validation(
                "variables.taken ? variables.unchanged && !variables.deleted : variables.mine",
                "the hub's account may write only Services that it created; of one that it took over it may change neither selector, type, externalName nor externalIPs",
            ),
            validation(
                "!variables.taken || variables.adopted || variables.released",
                "the hub's account may take over a Service only if it marks it as adopted",
            ),
        ];
        let mut variables = marks(hub);
        variables.extend(adoption(hub));
        fenced.push(but_for_dry_runs(policy(SERVICES, owner, rules, variables, validations)));
    }
    let rules: Vec<_> = [
        ("discovery.k8s.io", "endpointslices"),
        (mcs::GROUP, mcs::SERVICE_IMPORTS),
        (about::GROUP, about::CLUSTER_PROPERTIES),
    ]
    .into_iter()
    .filter(|(group, resource)| !open(group, resource))
    .map(|(group, resource)| writes(group, &[resource]))
    .collect();
    if !rules.is_empty() {
        let apiserver = format!(
            "object == null || request.namespace != 'default' || !has(object.metadata.labels) || !('{name}' in object.metadata.labels) || object.metadata.labels['{name}'] != 'kubernetes'",
            name = label::SERVICE_NAME
        );
        let validations = vec![
            system_namespaces(gaps.namespaces),
            validation(&apiserver, "the hub's account may not add endpoints to the cluster's own API"),
            validation("variables.mine", "the hub's account may write only objects with its own label"),
        ];
        fenced.push(policy(OBJECTS, owner, rules, marks(hub), validations));
    }
    let bound = format!(
        "has(object.spec.boundObjectRef) && object.spec.boundObjectRef.kind == 'Secret' && object.spec.boundObjectRef.name == '{}'",
        atoll_member::BOUND_TO
    );
    let short = format!("object.spec.expirationSeconds <= {}", gaps.token_seconds);
    let rules = vec![rule(&["CREATE"], "", &["serviceaccounts/token"])];
    let validations = vec![
        validation(&bound, "the hub's account may ask only for tokens that can be revoked"),
        validation(
            &short,
            "the hub's account may not ask for a token that lasts longer than the join allowed",
        ),
    ];
    fenced.push(policy(TOKENS, owner, rules, Vec::new(), validations));
    fenced
}

/// Every policy that there can be, by name: those that are not wanted go.
pub(super) const NAMES: [&str; 3] = [SERVICES, OBJECTS, TOKENS];

/// Which object is the hub's: before and after.
fn marks(hub: &str) -> Vec<Variable> {
    let labelled = |object: &str| {
        let has = |key: &str| {
            format!("'{key}' in {object}.metadata.labels && {object}.metadata.labels['{key}'] == '{hub}'")
        };
        format!(
            "{object} != null && has({object}.metadata.labels) && ({} || {})",
            has(label::HUB),
            has(label::PROPAGATED)
        )
    };
    vec![
        variable("is", &labelled("object")),
        variable("was", &labelled("oldObject")),
        variable("mine", "(object == null || variables.is) && (oldObject == null || variables.was)"),
    ]
}

/// A Service of a user that a `MultiClusterService` took over, or is about to, or gives back.
fn adoption(hub: &str) -> Vec<Variable> {
    let adopted = |object: &str| {
        format!(
            "{object} != null && has({object}.metadata.annotations) && '{key}' in {object}.metadata.annotations && {object}.metadata.annotations['{key}'] == 'true'",
            key = annotation::ADOPTED
        )
    };
    let same = |field: &str, none: &str| {
        format!(
            "(has(object.spec.{field}) ? object.spec.{field} : {none}) == (has(oldObject.spec.{field}) ? oldObject.spec.{field} : {none})"
        )
    };
    let unchanged =
        [same("selector", "{}"), same("type", "''"), same("externalName", "''"), same("externalIPs", "[]")]
            .join(" && ");
    let copy = format!(
        "variables.is && '{key}' in object.metadata.labels && object.metadata.labels['{key}'] == '{hub}'",
        key = label::PROPAGATED
    );
    vec![
        variable("deleted", "object == null"),
        // It is a user's: before this request not ours, or only adopted.
        variable("taken", &format!("oldObject != null && (!variables.was || ({}))", adopted("oldObject"))),
        variable("unchanged", &format!("object != null && oldObject != null && {unchanged}")),
        variable("adopted", &format!("{copy} && {}", adopted("object"))),
        variable("released", &format!("variables.was && !variables.is && !({})", adopted("object"))),
    ]
}

fn system_namespaces(open: &[String]) -> Validation {
    let open: Vec<String> = open.iter().map(|name| format!("'{name}'")).collect();
    let expression = format!(
        "object == null || !request.namespace.startsWith('{}') || request.namespace in [{}]",
        namespace::KUBERNETES_PREFIX,
        open.join(", ")
    );
    validation(&expression, "the hub's account may not write to system namespaces")
}

fn policy(
    name: &str,
    owner: &Owner,
    rules: Vec<NamedRuleWithOperations>,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
) -> (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding) {
    let hub = format!(
        "request.userInfo.username == 'system:serviceaccount:{}:{}'",
        crate::options::NAMESPACE,
        rbac::NAME
    );
    let policy = ValidatingAdmissionPolicy {
        metadata: rbac::owned(name, owner),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![MatchCondition { name: "hub".to_owned(), expression: hub }]),
            match_constraints: Some(MatchResources {
                resource_rules: Some(rules),
                ..MatchResources::default()
            }),
            validations: Some(validations),
            variables: Some(variables).filter(|variables| !variables.is_empty()),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: rbac::owned(name, owner),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: name.to_owned(),
            validation_actions: vec!["Deny".to_owned()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    };
    (policy, binding)
}

/// Creating a Service by a dry run creates nothing: the hub asks that way which IP families Services can have.
fn but_for_dry_runs(
    (mut policy, binding): (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding),
) -> (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding) {
    let writes = "request.operation != 'CREATE' || !has(request.dryRun) || !request.dryRun".to_owned();
    let condition = MatchCondition { name: "not-a-dry-run".to_owned(), expression: writes };
    let spec = policy.spec.get_or_insert_default();
    spec.match_conditions.get_or_insert_default().push(condition);
    (policy, binding)
}

fn writes(group: &str, resources: &[&str]) -> NamedRuleWithOperations {
    rule(&["CREATE", "UPDATE", "DELETE"], group, resources)
}

fn rule(operations: &[&str], group: &str, resources: &[&str]) -> NamedRuleWithOperations {
    let all = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: all(&[group]),
        api_versions: all(&["*"]),
        operations: all(operations),
        resources: all(resources),
        ..NamedRuleWithOperations::default()
    }
}

fn variable(name: &str, expression: &str) -> Variable {
    Variable { name: name.to_owned(), expression: expression.to_owned() }
}

fn validation(expression: &str, message: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message: Some(message.to_owned()),
        reason: Some("Forbidden".to_owned()), // as if the role did not grant it
        ..Validation::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_lets_policies_bring_is_not_fenced_and_all_else_is() {
        let role = rbac::role("h", &Propagation::Nothing, false);
        let owner = rbac::owner(&role, "h");
        let names = |propagation: &Propagation| -> Vec<String> {
            let gaps = Gaps { propagation, namespaces: &[], token_seconds: 600 };
            let all = policies("h", &owner, &gaps);
            all.into_iter().map(|(policy, _)| policy.metadata.name.unwrap()).collect()
        };
        assert_eq!(names(&Propagation::Nothing), [SERVICES, OBJECTS, TOKENS]);
        assert_eq!(names(&Propagation::Kinds(vec!["services".to_owned()])), [OBJECTS, TOKENS]);
        assert_eq!(names(&Propagation::Everything), [TOKENS]);
    }
}
