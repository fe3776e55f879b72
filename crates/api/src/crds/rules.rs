//! What an API server checks beyond types: CEL rules, with the words that Karmada's webhook uses, since users' scripts may match
//! on them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};

/// One rule: on the schema at `at`, `[]` being a list's elements; nothing is the root.
pub struct Rule {
    /// Where it stands.
    pub at: &'static str,
    /// What must hold, in CEL.
    pub rule: &'static str,
    /// What is said where it does not.
    pub message: &'static str,
}

const fn rule(at: &'static str, rule: &'static str, message: &'static str) -> Rule {
    Rule { at, rule, message }
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
    with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const IS_LABEL: &str = "size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')";
const CLUSTER_NAME: [(&str, &str); 3] = [
    ("size(self) > 0", "must be not empty"),
    ("size(self) <= 48", "must be no more than 48 characters"),
    (IS_LABEL, LABEL),
];

const fn cluster_name(at: &'static str, number: usize) -> Rule {
    rule(at, CLUSTER_NAME[number].0, CLUSTER_NAME[number].1)
}

/// Of `MultiClusterService`.
pub const MULTI_CLUSTER_SERVICE: &[Rule] = &[
    rule(
        "",
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end \
         with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    ),
    rule("", "size(self.metadata.name) <= 63", "must be no more than 63 characters"),
    rule("spec.types", "self == oldSelf", "MultiClusterService types are immutable"),
    rule(
        "spec.types",
        "self.all(one, one == self[0])",
        "MultiClusterService types should not contain more than one type",
    ),
    rule("spec.types[]", "self in ['CrossCluster', 'LoadBalancer']", "ExposureType Error"),
    rule(
        "spec.ports",
        "self.all(one, !has(one.name) || size(one.name) == 0 || \
         self.exists_one(other, has(other.name) && other.name == one.name))",
        "Duplicate value: a port name stands here twice",
    ),
    rule("spec.ports[].name", IS_LABEL, LABEL),
    rule("spec.ports[].name", "size(self) <= 63", "must be no more than 63 characters"),
    rule("spec.ports[].port", "self >= 1 && self <= 65535", "must be between 1 and 65535, inclusive"),
    cluster_name("spec.providerClusters[].name", 0),
    cluster_name("spec.providerClusters[].name", 1),
    cluster_name("spec.providerClusters[].name", 2),
    cluster_name("spec.consumerClusters[].name", 0),
    cluster_name("spec.consumerClusters[].name", 1),
    cluster_name("spec.consumerClusters[].name", 2),
];

/// Puts the rules into every version of a CRD. A path that leads nowhere is a mistake of ours, which a test finds.
pub(super) fn install(crd: &mut CustomResourceDefinition, rules: &[Rule]) {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for root in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        for Rule { at, rule, message } in rules {
            if let Some(node) = find(root, at) {
                let rule = ValidationRule {
                    rule: (*rule).to_owned(),
                    message: Some((*message).to_owned()),
                    ..ValidationRule::default()
                };
                node.x_kubernetes_validations.get_or_insert_default().push(rule);
            }
        }
    }
}

fn find<'a>(root: &'a mut JSONSchemaProps, path: &str) -> Option<&'a mut JSONSchemaProps> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(root, |node, part| {
        let found = node.properties.as_mut()?.get_mut(part.trim_end_matches("[]"))?;
        if !part.ends_with("[]") {
            return Some(found);
        }
        match &mut found.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&mut **items),
            Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
        }
    })
}
