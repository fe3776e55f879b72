//! Asks a member what an author of the hub may do there, by `SubjectAccessReview`: nothing is done in the author's name.

use std::time::Duration;

use atoll_engine::names::ClusterId;
use atoll_engine::placement::access::{Author, Verdict};
use atoll_engine::placement::object::Kind;
use kube::Client;

use super::{allowed, lacks, resource};
use crate::membership::connect::code;
use crate::membership::reach;

/// Questions under way in one member.
pub(super) const AT_ONCE: usize = 2;
/// A member that does not answer is asked again later.
const WITHIN: Duration = Duration::from_secs(10);
/// Prefix of the users and groups that each cluster has of its own.
const OWN: &str = "system:";
/// All authenticated users are of it, in each cluster.
const KNOWN: &str = "system:authenticated";
/// Service accounts are named alike in all clusters: whoever grants rights to one in a member means that name.
const ACCOUNTS: &str = "system:serviceaccount:";
/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Whether a user of this name may create and change objects of a kind in a namespace there.
pub(super) async fn may(
    hub: &Client,
    author: &Author,
    id: &ClusterId,
    kind: &Kind,
    namespace: &str,
) -> Result<Verdict, kube::Error> {
    let Some(author) = as_known(author) else {
        return Ok(Verdict::Denied(format!("users system:… are each cluster's own, and not known in {id}")));
    };
    let resource = resource(hub, kind).await?;
    let config = match reach::member(hub, id.as_str()).await {
        Ok(config) => config,
        Err(error) => return Ok(unsaid(id, &error.why().unwrap_or_else(|| error.to_string()))),
    };
    let client = Client::try_from(config)?;
    let wanted = ["create", "update"].map(|verb| (verb, resource.plural.as_str()));
    for (verb, plural) in wanted.into_iter().chain(beyond(kind)) {
        let asked = allowed(&client, &author, verb, &resource.group, plural, namespace);
        match tokio::time::timeout(WITHIN, asked).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Ok(Verdict::Denied(lacks(verb, plural, namespace, id.as_str()))),
            Ok(Err(error)) if code(&error) == Some(403) => {
                return Ok(unsaid(
                    id,
                    &format!(
                        "the hub may not create subjectaccessreviews there: run `atoll join {id} --check-authors` again"
                    ),
                ));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => return Ok(unsaid(id, "it does not answer")),
        }
    }
    Ok(Verdict::Allowed)
}

fn unsaid(id: &ClusterId, why: &str) -> Verdict {
    Verdict::Denied(format!("it is not known whether they may in {id}: {why}"))
}

/// A role or a binding needs more than the right to its kind: it gives what its author may not have. What is in it is not looked at there.
fn beyond(kind: &Kind) -> Option<(&'static str, &'static str)> {
    match (kind.group(), kind.kind.as_str()) {
        (RBAC, "Role") => Some(("escalate", "roles")),
        (RBAC, "ClusterRole") => Some(("escalate", "clusterroles")),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => Some(("bind", "clusterroles")),
        _ => None,
    }
}

/// The author as other clusters know them; none if they can't.
fn as_known(author: &Author) -> Option<Author> {
    if author.username.starts_with(OWN) && !author.username.starts_with(ACCOUNTS) {
        return None;
    }
    let groups = author.groups.iter().filter(|group| !group.starts_with(OWN) || *group == KNOWN);
    Some(Author { username: author.username.clone(), groups: groups.cloned().collect(), ..Author::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_clusters_own_is_not_asked_about_in_another() {
        let of = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let uid = "of the hub".to_owned();
            as_known(&Author { username: name.to_owned(), groups, uid, ..Author::default() })
        };
        for (name, groups, want) in [
            (
                "bob",
                &["dev", "system:authenticated", "system:nodes"][..],
                Some(&["dev", "system:authenticated"][..]),
            ),
            ("bob", &["system:masters"], Some(&[])),
            ("system:serviceaccount:flux:flux", &["system:serviceaccounts"], Some(&[])),
            ("system:admin", &[], None),
            ("system:node:one", &["system:nodes"], None),
        ] {
            let known = of(name, groups);
            assert_eq!(
                known.as_ref().map(|known| known.groups.iter().map(String::as_str).collect()),
                want.map(<[_]>::to_vec)
            );
            assert!(known.is_none_or(|known| known.uid.is_empty()), "uids are each cluster's own");
        }
    }

    #[test]
    fn roles_and_bindings_need_the_right_to_give_what_is_in_them() {
        let of = |kind: &str| beyond(&Kind::new(format!("{RBAC}/v1"), kind));
        assert_eq!(of("Role"), Some(("escalate", "roles")));
        assert_eq!(of("ClusterRoleBinding"), Some(("bind", "clusterroles")));
        assert_eq!(beyond(&Kind::new("v1", "Secret")), None);
    }
}
