//! May this cluster join? Pure: what is known of all members in, a refusal out.

use std::collections::BTreeMap;

use atoll_api::names::annotation::network;
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::membership::annotations::ranges;
use crate::membership::credentials;
use crate::membership::networks::{Networks, Overlap, Ranges, overlap};

/// The cluster that wants to join.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// Its name.
    pub name: ClusterId,
    /// The uid of its kube-system.
    pub uid: String,
    /// What this hub calls it, by the property that it keeps there.
    pub called: Option<ClusterId>,
    /// It is the cluster of the hub's API, by its uid; and whether that was proved.
    pub hub: Option<bool>,
    /// Its networks, declared or else observed.
    pub networks: Networks,
}

/// A member that there is.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The uid of its kube-system, if its `Cluster` says so.
    pub uid: Option<String>,
    /// Its networks.
    pub networks: Networks,
    /// It is on its way out.
    pub leaving: bool,
}

/// Why a cluster may not join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another cluster has the name.
    #[error("another cluster already has this name")]
    NameTaken {
        /// The uid of the member's kube-system.
        theirs: String,
        /// The uid of the newcomer's.
        ours: String,
    },
    /// The cluster has another name already.
    #[error("this cluster is already a member, with the name `{name}`")]
    JoinedAs {
        /// Its name.
        name: String,
        /// The uid of its kube-system.
        uid: String,
    },
    /// It says that it is the hub's own cluster.
    #[error("this cluster has the kube-system UID of the hub's own cluster, and is another one")]
    ClaimsHub,
    /// A member of that name is being cleaned.
    #[error("the former member of this name is still being cleaned up")]
    StillLeaving,
    /// Networks overlap.
    #[error("its {} {} overlaps the {} {} of `{other}`", .overlap.ours.0, .overlap.ours.1, .overlap.theirs.0, .overlap.theirs.1)]
    Overlaps {
        /// The other member.
        other: String,
        /// The ranges.
        overlap: Overlap,
    },
}

/// What a check found that is no hindrance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// The same cluster is a member under this name already.
    pub again: bool,
    /// An overlap that was allowed.
    pub tolerated: Option<Refusal>,
    /// A member that says it has the same uid, although it is another cluster.
    pub same_uid: Option<String>,
}

/// May it join?
pub fn check(
    newcomer: &Newcomer,
    known: &BTreeMap<String, Known>,
    allow_overlap: bool,
) -> Result<Checked, Refusal> {
    if newcomer.hub == Some(false) {
        return Err(Refusal::ClaimsHub);
    }
    let namesake = known.get(newcomer.name.as_str());
    if let Some(namesake) = namesake {
        if namesake.leaving {
            return Err(Refusal::StillLeaving);
        }
        if let Some(theirs) = namesake.uid.as_ref().filter(|uid| **uid != newcomer.uid) {
            return Err(Refusal::NameTaken { theirs: theirs.clone(), ours: newcomer.uid.clone() });
        }
    }
    let others = || known.iter().filter(|(name, _)| *name != newcomer.name.as_str());
    // A uid is only what a cluster says. That it is a member already is shown by the name that we gave it; else another member
    // claims its uid, and must not keep it out.
    let claims = |other: &Known| other.uid.as_ref() == Some(&newcomer.uid);
    let called = |name: &str| newcomer.called.as_ref().is_some_and(|called| called.as_str() == name);
    if let Some((name, _)) = others().find(|(name, other)| claims(other) && called(name)) {
        return Err(Refusal::JoinedAs { name: name.clone(), uid: newcomer.uid.clone() });
    }
    let same_uid = others().find(|(_, other)| claims(other)).map(|(name, _)| name.clone());
    let overlapping = others().find_map(|(name, other)| {
        let overlap = overlap(&newcomer.networks, &other.networks)?;
        Some(Refusal::Overlaps { other: name.clone(), overlap })
    });
    match overlapping {
        Some(refusal) if !allow_overlap => Err(refusal),
        tolerated => Ok(Checked { again: namesake.is_some(), tolerated, same_uid }),
    }
}

/// What is known of a member: what the operator declared, else what was observed when it joined. Its Secret says so; where there is
/// none that does, its `Cluster`.
pub fn known(cluster: &Cluster, secrets: &[Secret]) -> (String, Known) {
    let named = cluster.spec.secret_ref.as_ref().map(|at| at.name.as_str());
    let id = ClusterId::parse(cluster.name_any()).ok();
    let own = secrets.iter().filter(|secret| named == secret.metadata.name.as_deref()).find(|secret| {
        let of = credentials::read(secret).zip(id.as_ref());
        of.is_some_and(|(read, id)| read.are_of(id)) && secret.annotations().contains_key(network::BOUND)
    });
    let annotations = own.map_or_else(|| cluster.annotations(), |secret| secret.annotations());
    let read = |declared, observed| {
        let of = |key| ranges(annotations, key).unwrap_or_default();
        Some(of(declared)).filter(|ranges: &Ranges| !ranges.0.is_empty()).unwrap_or_else(|| of(observed))
    };
    let networks = Networks {
        pods: read(network::PODS, network::OBSERVED_PODS),
        services: read(network::SERVICES, network::OBSERVED_SERVICES),
        nodes: read(network::NODES, network::OBSERVED_NODES),
    };
    let leaving = cluster.metadata.deletion_timestamp.is_some();
    (cluster.name_any(), Known { uid: cluster.spec.id.clone(), networks, leaving })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(pods: &str, services: &str) -> Networks {
        let (pods, services) = (pods.parse().unwrap(), services.parse().unwrap());
        Networks { pods, services, ..Networks::default() }
    }

    fn member(uid: &str, pods: &str) -> Known {
        Known { uid: Some(uid.to_owned()), networks: networks(pods, ""), leaving: false }
    }

    #[test]
    fn a_cluster_joins_once_under_one_name_with_networks_of_its_own() {
        let known: BTreeMap<String, Known> = [
            ("east".to_owned(), member("u1", "10.1.0.0/16")),
            ("old".to_owned(), Known { leaving: true, ..member("u9", "10.9.0.0/16") }),
        ]
        .into();
        for (name, uid, pods, want) in [
            ("west", "u2", "10.2.0.0/16", Ok(false)),
            ("east", "u1", "10.1.0.0/16", Ok(true)),
            ("east", "u2", "10.2.0.0/16", Err("another cluster already has this name")),
            ("west", "u1", "10.1.0.0/16", Err("this cluster is already a member, with the name `east`")),
            ("old", "u9", "10.9.0.0/16", Err("the former member of this name is still being cleaned up")),
            (
                "west",
                "u2",
                "10.1.4.0/24",
                Err("its pod network 10.1.4.0/24 overlaps the pod network 10.1.0.0/16 of `east`"),
            ),
        ] {
            let networks = networks(pods, "");
            let called = (uid == "u1").then(|| ClusterId::parse("east").unwrap());
            let (name_of, uid_of) = (ClusterId::parse(name).unwrap(), uid.to_owned());
            let newcomer = Newcomer { name: name_of, uid: uid_of, called, hub: None, networks };
            let got = check(&newcomer, &known, false)
                .map(|checked| checked.again)
                .map_err(|refusal| refusal.to_string());
            assert_eq!(got, want.map_err(str::to_owned), "{name} {uid} {pods}");
        }
    }

    #[test]
    fn a_liar_that_joined_first_with_an_honest_clusters_uid_does_not_keep_it_out() {
        let known = [("liar".to_owned(), member("u1", "10.6.0.0/16"))].into();
        let newcomer = |called: Option<&str>, hub| Newcomer {
            name: ClusterId::parse("paris").unwrap(),
            uid: "u1".to_owned(),
            called: called.map(|name| ClusterId::parse(name).unwrap()),
            hub,
            networks: networks("10.1.0.0/16", ""),
        };
        let joins = check(&newcomer(None, None), &known, false).unwrap();
        assert_eq!(joins.same_uid.as_deref(), Some("liar"));
        assert!(check(&newcomer(Some("paris"), None), &known, false).unwrap().same_uid.is_some());
        // The honest mistake: it is a member already, under another name.
        assert!(matches!(check(&newcomer(Some("liar"), None), &known, false), Err(Refusal::JoinedAs { .. })));
        assert_eq!(check(&newcomer(None, Some(false)), &known, false), Err(Refusal::ClaimsHub));
        assert!(check(&newcomer(None, Some(true)), &known, false).is_ok());
    }

    #[test]
    fn an_overlap_can_be_allowed_and_nothing_else_can() {
        let known = [("east".to_owned(), member("u1", "10.1.0.0/16"))].into();
        let newcomer = |name: &str, uid: &str| Newcomer {
            name: ClusterId::parse(name).unwrap(),
            uid: uid.to_owned(),
            called: Some(ClusterId::parse("east").unwrap()),
            hub: None,
            networks: networks("10.1.0.0/16", ""),
        };
        assert!(check(&newcomer("west", "u2"), &known, true).unwrap().tolerated.is_some());
        assert!(check(&newcomer("west", "u1"), &known, true).is_err());
    }
}
