//! What policies may bring to a member that joins again: what was granted stays, unless it is taken away by name.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{Api, Client};

use super::JoinError;
use super::rbac::{self, Propagation};
use crate::membership::{clusterset, connect};

/// What an earlier join granted to this hub in the cluster; nothing if it never joined.
///
/// # Errors
/// Where one of the APIs can't be asked.
pub async fn granted(hub: &Client, member: &Client, namespace: &str) -> Result<Propagation, JoinError> {
    let roles: Api<ClusterRole> = Api::all(member.clone());
    let role = match roles.get_opt(rbac::NAME).await {
        Ok(Some(role)) => role,
        Ok(None) => return Ok(Propagation::Nothing),
        // Who may not read it may not join either: the check of rights that follows says which are missing.
        Err(error) if connect::code(&error) == Some(403) => return Ok(Propagation::Nothing),
        Err(error) => return Err(JoinError::member(error)),
    };
    match clusterset::hub_uid(hub, namespace).await {
        Ok(uid) => Ok(of_role(&role, &uid)),
        Err(error) if connect::code(&error) == Some(404) => Ok(Propagation::Nothing), // no hub has run yet
        Err(error) => Err(JoinError::hub(error)),
    }
}

/// What a role of this hub grants beside what every role of a hub has.
fn of_role(role: &ClusterRole, hub: &str) -> Propagation {
    let base = rbac::role(hub, &Propagation::Nothing, true);
    if role.metadata.labels.as_ref().is_none_or(|labels| Some(labels) != base.metadata.labels.as_ref()) {
        return Propagation::Nothing; // another hub's
    }
    let mut rules = role.rules.clone().unwrap_or_default();
    for rule in base.rules.unwrap_or_default() {
        if let Some(at) = rules.iter().position(|one| *one == rule) {
            rules.remove(at);
        }
    }
    let kinds: Vec<String> = rules.iter().filter_map(kind).collect();
    match kinds.is_empty() {
        true => Propagation::Nothing,
        false if kinds.iter().any(|kind| kind == ALL) => Propagation::Everything,
        false => Propagation::Kinds(kinds),
    }
}

/// Every kind.
const ALL: &str = "*";

/// The kind that a rule grants, if a join wrote it for one.
fn kind(rule: &PolicyRule) -> Option<String> {
    let (groups, resources) = (rule.api_groups.as_deref()?, rule.resources.as_deref()?);
    let ([group], [resource], true) = (groups, resources, rbac::is_own(&rule.verbs)) else { return None };
    Some(match group.as_str() {
        "" => resource.clone(),
        ALL => ALL.to_owned(),
        group => format!("{resource}.{group}"),
    })
}

/// What changes of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regrant {
    /// What is granted from now on.
    pub after: Propagation,
    /// Kinds that were granted before, and stay.
    pub kept: Vec<String>,
    /// Kinds that were granted before, and are no longer.
    pub revoked: Vec<String>,
}

/// What is granted, if these kinds are taken away and then those added. `*` means all of them.
pub fn regrant(before: &Propagation, revoke: &[String], allow: &[String]) -> Regrant {
    let list = |grant: &Propagation| match grant {
        Propagation::Nothing => Vec::new(),
        Propagation::Everything => vec![ALL.to_owned()],
        Propagation::Kinds(kinds) => kinds.clone(),
    };
    let goes = |kind: &String| revoke.iter().any(|one| one == ALL || one == kind);
    let (revoked, kept): (Vec<String>, Vec<String>) = list(before).into_iter().partition(goes);
    let mut kinds = kept.clone();
    for kind in allow {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    let after = match kinds.is_empty() {
        true => Propagation::Nothing,
        false if kinds.iter().any(|kind| kind == ALL) => Propagation::Everything,
        false => Propagation::Kinds(kinds),
    };
    let revoked = revoked.into_iter().filter(|kind| !list(&after).contains(kind)).collect();
    Regrant { after, kept, revoked }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(list: &[&str]) -> Vec<String> {
        list.iter().map(|&kind| kind.to_owned()).collect()
    }

    fn grant(list: &[&str]) -> Propagation {
        match list {
            [] => Propagation::Nothing,
            ["*"] => Propagation::Everything,
            list => Propagation::Kinds(kinds(list)),
        }
    }

    #[test]
    fn what_a_role_grants_is_what_the_join_was_told() {
        for list in [&[][..], &["*"], &["deployments.apps", "configmaps"], &["services", "pods/exec"]] {
            assert_eq!(of_role(&rbac::role("h", &grant(list), true), "h"), grant(list));
            assert_eq!(of_role(&rbac::role("other", &grant(list), false), "h"), Propagation::Nothing);
        }
    }

    #[test]
    fn joining_again_keeps_what_was_granted_unless_it_is_revoked() {
        for (before, revoke, allow, after, kept, revoked) in [
            (&[][..], &[][..], &["a"][..], &["a"][..], &[][..], &[][..]),
            (&["a", "b"], &[], &[], &["a", "b"], &["a", "b"], &[]),
            (&["a"], &[], &["b", "a"], &["a", "b"], &["a"], &[]),
            (&["a", "b"], &["a"], &[], &["b"], &["b"], &["a"]),
            (&["a", "b"], &["*"], &[], &[], &[], &["a", "b"]),
            (&["*"], &["*"], &["a"], &["a"], &[], &["*"]),
            (&["*"], &["a"], &[], &["*"], &["*"], &[]),
            (&["a"], &["*"], &["a"], &["a"], &[], &[]),
            (&["a"], &[], &["*"], &["*"], &["a"], &[]),
        ] {
            let got = regrant(&grant(before), &kinds(revoke), &kinds(allow));
            let want = Regrant { after: grant(after), kept: kinds(kept), revoked: kinds(revoked) };
            assert_eq!(got, want, "{before:?} -{revoke:?} +{allow:?}");
        }
    }
}
