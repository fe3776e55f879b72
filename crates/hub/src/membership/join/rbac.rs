//! What the hub may do in a member: all of it, in this file. Never more than the work needs.

use std::collections::BTreeMap;

use atoll_api::crds;
use atoll_api::names::kind::{about, mcs};
use atoll_api::names::{label, property};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ObjectMeta;

/// Of the service account, the role and its binding.
pub(crate) const NAME: &str = atoll_member::ROLE;
/// Of the Secret with a token without end, which earlier joins made.
pub(crate) const TOKEN: &str = "atoll-hub-token";
/// The roles that give users their part.
const EDIT: &str = "atoll-edit";
const VIEW: &str = "atoll-view";

const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Which kinds the hub may bring to a member beside services.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Propagation {
    /// None.
    #[default]
    Nothing,
    /// Whatever there is.
    Everything,
    /// These, such as `deployments.apps` or `configmaps`.
    Kinds(Vec<String>),
}

impl Propagation {
    /// Whether it grants this kind.
    pub(crate) fn grants(&self, group: &str, resource: &str) -> bool {
        let one = |list: &Option<Vec<String>>, word: &str| {
            list.iter().flatten().any(|one| one == "*" || one == word)
        };
        self.rules().iter().any(|rule| one(&rule.api_groups, group) && one(&rule.resources, resource))
    }

    /// What it grants, as a person reads it; empty if that is nothing.
    pub fn kinds(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Everything => "*".to_owned(),
            Self::Kinds(kinds) => kinds.join(", "),
        }
    }

    /// Whether whoever has the hub's token could thereby get every right in the member.
    pub fn is_everything(&self) -> bool {
        let anything = |rule: &PolicyRule| rule.resources.iter().flatten().any(|one| one.starts_with('*'));
        self.rules().iter().any(anything) || self.grants("rbac.authorization.k8s.io", "clusterrolebindings")
    }

    fn rules(&self) -> Vec<PolicyRule> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Everything => vec![rule("*", &["*"], OWN)],
            Self::Kinds(kinds) => {
                let split = |kind: &String| {
                    let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
                    rule(group, &[plural], OWN)
                };
                kinds.iter().map(split).collect()
            }
        }
    }
}

/// What the hub may do in a member.
///
/// `asks`: it asks what others may do there.
pub(crate) fn role(hub: &str, propagation: &Propagation, asks: bool) -> ClusterRole {
    let review = rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]);
    let crds: Vec<String> = crds::of_members().iter().map(ResourceExt::name_any).collect();
    let crds: Vec<&str> = crds.iter().map(String::as_str).collect();
    ClusterRole {
        metadata: named(NAME, hub),
        rules: Some(
            [
                vec![
                    // Facts.
                    rule("", &["namespaces", "nodes"], READ),
                    rule(mcs::GROUP, &[mcs::SERVICE_EXPORTS], READ),
                    rule("networking.k8s.io", &["servicecidrs"], &["get", "list"]),
                    rule("networking.k8s.io", &["ipaddresses"], &["get"]),
                    // What is made: derived Services, their slices, ServiceImports.
                    rule("", &["services"], OWN),
                    rule("discovery.k8s.io", &["endpointslices"], OWN),
                    rule("discovery.k8s.io", &["endpointslices/restricted"], &["create", "update"]), // OpenShift
                    rule(mcs::GROUP, &[mcs::SERVICE_IMPORTS], OWN),
                    // What is told.
                    rule(mcs::GROUP, &["serviceexports/status"], &["get", "patch"]),
                    rule(mcs::GROUP, &["serviceimports/status"], &["get", "update"]),
                    rule("", &["events"], &["create"]), // about these objects; a member without it has conditions only
                    rule(about::GROUP, &[about::CLUSTER_PROPERTIES], &["get", "list", "watch", "create"]),
                    only(
                        about::GROUP,
                        &[about::CLUSTER_PROPERTIES],
                        &[property::CLUSTER_ID, property::CLUSTERSET],
                        &["update", "delete"],
                    ),
                    // Whether the kinds are there; `join` puts them there with its own rights.
                    only("apiextensions.k8s.io", &["customresourcedefinitions"], &crds, &["get"]),
                    // When it leaves: this very role, and with it all that belongs to it.
                    only("rbac.authorization.k8s.io", &["clusterroles"], &[NAME], &["get", "delete"]),
                    // What policies bring.
                ],
                propagation.rules(),
                asks.then_some(review).into_iter().collect(),
            ]
            .concat(),
        ),
        ..ClusterRole::default()
    }
}

/// What the hub needs in every member, whatever policies bring: for whoever asks whether it has it.
pub fn needed() -> Vec<PolicyRule> {
    role("", &Propagation::Nothing, false).rules.unwrap_or_default()
}

/// What users get: with `edit` they may export, with `view` they may look. Only the hub writes a ServiceImport.
pub(crate) fn users(owner: &Owner) -> [ClusterRole; 2] {
    let write = rule(mcs::GROUP, &[mcs::SERVICE_EXPORTS], OWN);
    let read = rule(mcs::GROUP, &[mcs::SERVICE_EXPORTS, mcs::SERVICE_IMPORTS], READ);
    [aggregated(EDIT, &["edit", "admin"], write, owner), aggregated(VIEW, &["view"], read, owner)]
}

pub(crate) fn account(namespace: &str, owner: &Owner) -> ServiceAccount {
    let metadata = ObjectMeta { namespace: Some(namespace.to_owned()), ..owned(NAME, owner) };
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

pub(crate) fn binding(namespace: &str, owner: &Owner) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: owned(NAME, owner),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: NAME.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: NAME.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    }
}

/// What the hub may do in its own namespace there: renew its token, and give up its account.
pub(crate) fn local_role(namespace: &str, owner: &Owner) -> Role {
    Role {
        metadata: ObjectMeta { namespace: Some(namespace.to_owned()), ..owned(NAME, owner) },
        rules: Some(vec![
            only("", &["serviceaccounts/token"], &[NAME], &["create"]),
            only("", &["serviceaccounts"], &[NAME], &["get", "delete"]),
        ]),
    }
}

pub(crate) fn local_binding(namespace: &str, owner: &Owner) -> RoleBinding {
    let ClusterRoleBinding { role_ref, subjects, .. } = binding(namespace, owner);
    RoleBinding {
        metadata: ObjectMeta { namespace: Some(namespace.to_owned()), ..owned(NAME, owner) },
        role_ref: RoleRef { kind: "Role".to_owned(), ..role_ref },
        subjects,
    }
}

/// The Secret that tokens are bound to: they end with it.
pub(crate) fn bound_to(namespace: &str, owner: &Owner) -> Secret {
    let metadata =
        ObjectMeta { namespace: Some(namespace.to_owned()), ..owned(atoll_member::BOUND_TO, owner) };
    Secret { metadata, ..Secret::default() }
}

/// The role as the owner of all the rest: whoever deletes it deletes everything.
pub(crate) struct Owner {
    hub: String,
    role: OwnerReference,
}

pub(crate) fn owner(role: &ClusterRole, hub: &str) -> Owner {
    let role = OwnerReference {
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        kind: "ClusterRole".to_owned(),
        name: role.name_any(),
        uid: role.uid().unwrap_or_default(),
        ..OwnerReference::default()
    };
    Owner { hub: hub.to_owned(), role }
}

/// Whether a hub of this uid made it: the names are the same for all hubs.
pub(crate) fn is_of(object: &impl ResourceExt, hub: &str) -> bool {
    object.labels().get(label::HUB).is_some_and(|of| of == hub)
}

fn aggregated(name: &str, to: &[&str], rule: PolicyRule, owner: &Owner) -> ClusterRole {
    let label = |role: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    let mut metadata = owned(name, owner);
    metadata.labels.get_or_insert_default().extend(to.iter().map(label));
    ClusterRole { metadata, rules: Some(vec![rule]), ..ClusterRole::default() }
}

fn named(name: &str, hub: &str) -> ObjectMeta {
    let labels = BTreeMap::from([(label::HUB.to_owned(), hub.to_owned())]);
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() }
}

pub(super) fn owned(name: &str, owner: &Owner) -> ObjectMeta {
    ObjectMeta { owner_references: Some(vec![owner.role.clone()]), ..named(name, &owner.hub) }
}

/// Whether these are the verbs of a grant.
pub(super) fn is_own(verbs: &[String]) -> bool {
    verbs == OWN
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(all(resources)),
        verbs: all(verbs),
        ..PolicyRule::default()
    }
}

fn only(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    PolicyRule { resource_names: Some(names), ..rule(group, resources, verbs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_gets_no_wildcards_no_secrets_and_no_way_to_more_rights() {
        for rule in role("h", &Propagation::Nothing, false).rules.unwrap() {
            let words = rule
                .verbs
                .iter()
                .chain(rule.resources.iter().flatten())
                .chain(rule.api_groups.iter().flatten());
            assert!(words.into_iter().all(|word| word != "*"), "{rule:?}");
            let resources = rule.resources.clone().unwrap();
            assert!(
                !resources.iter().any(|r| ["secrets", "pods", "serviceaccounts"].contains(&r.as_str())),
                "{rule:?}"
            );
            assert!(
                !rule.verbs.iter().any(|v| ["escalate", "bind", "impersonate"].contains(&v.as_str())),
                "{rule:?}"
            );
        }
    }

    #[test]
    fn of_events_the_hub_may_only_make_new_ones() {
        let rules = role("h", &Propagation::Nothing, false).rules.unwrap();
        let of_events = |rule: &&PolicyRule| rule.resources.iter().flatten().any(|one| one == "events");
        let verbs: Vec<&String> = rules.iter().filter(of_events).flat_map(|rule| &rule.verbs).collect();
        assert_eq!(verbs, ["create"]);
    }

    #[test]
    fn in_its_own_namespace_the_hub_reads_no_secret_and_names_every_object() {
        let role = role("h", &Propagation::Nothing, false);
        for rule in local_role("n", &owner(&role, "h")).rules.unwrap() {
            assert_eq!(rule.resource_names, Some(vec![NAME.to_owned()]), "{rule:?}");
            assert!(!rule.resources.unwrap().contains(&"secrets".to_owned()));
        }
    }

    #[test]
    fn a_grant_that_leads_to_every_right_is_known_as_such() {
        let kinds = |list: &[&str]| Propagation::Kinds(list.iter().map(|&kind| kind.to_owned()).collect());
        for all in [
            Propagation::Everything,
            kinds(&["*.apps"]),
            kinds(&["configmaps", "clusterrolebindings.rbac.authorization.k8s.io"]),
        ] {
            assert!(all.is_everything(), "{all:?}");
        }
        assert!(!kinds(&["deployments.apps", "services"]).is_everything());
    }

    #[test]
    fn what_policies_may_bring_is_what_join_was_told() {
        let kinds = Propagation::Kinds(vec!["deployments.apps".to_owned(), "configmaps".to_owned()]);
        let rules = role("h", &kinds, false).rules.unwrap();
        let may = |group: &str, resource: &str| {
            rules.iter().any(|rule| {
                let has =
                    |list: &Option<Vec<String>>, word: &str| list.iter().flatten().any(|one| one == word);
                has(&rule.api_groups, group) && has(&rule.resources, resource) && rule.verbs == OWN
            })
        };
        assert!(may("apps", "deployments") && may("", "configmaps"));
        assert!(!may("", "secrets") && !may("apps", "statefulsets"));
        assert_eq!(
            role("h", &Propagation::Everything, false).rules.unwrap().last(),
            Some(&rule("*", &["*"], OWN))
        );
    }

    #[test]
    fn users_may_export_and_never_write_an_import() {
        for role in users(&owner(&role("h", &Propagation::Nothing, false), "h")) {
            for rule in role.rules.unwrap() {
                let imports =
                    rule.resources.iter().flatten().any(|resource| resource.starts_with("serviceimports"));
                assert!(!imports || rule.verbs == READ, "{rule:?}");
            }
        }
    }

    #[test]
    fn everything_says_whose_it_is() {
        let role = role("h1", &Propagation::Nothing, false);
        let owner = owner(&role, "h1");
        let [edit, view] = users(&owner);
        assert!(is_of(&account("n", &owner), "h1"));
        assert!(is_of(&binding("n", &owner), "h1"));
        assert!(is_of(&bound_to("n", &owner), "h1"));
        assert!(is_of(&local_role("n", &owner), "h1"));
        assert!(is_of(&local_binding("n", &owner), "h1"));
        for role in [role, edit, view] {
            assert!(is_of(&role, "h1") && !is_of(&role, "h2"), "{role:?}");
        }
        assert!(!is_of(&ClusterRole::default(), "h1"), "a role without a mark is of no hub");
    }
}
