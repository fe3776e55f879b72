//! What derived Services and imported slices are called. A later rename would change every ClusterIP.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use atoll_api::names::prefix;
use sha2::{Digest, Sha256};

use crate::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName};
use crate::world::Cluster;

/// The name of a derived Service in one importer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Derived {
    /// `derived-<svc>`.
    Plain(ServiceName),
    /// `derived-<hash>`, since `derived-<svc>` is too long.
    TooLong(ServiceName),
    /// `derived-<hash>`, since a Service of another owner has, or had, the plain name.
    PlainTaken {
        /// The name chosen.
        hashed: ServiceName,
        /// The one that was taken.
        plain: ServiceName,
    },
    /// Both are taken by Services of other owners.
    BothTaken {
        /// The hashed name.
        hashed: ServiceName,
        /// The plain name.
        plain: ServiceName,
    },
}

/// The names that a derived Service can have.
#[derive(Debug, Clone)]
pub struct Candidates {
    namespace: Namespace,
    plain: Option<ServiceName>,
    hashed: ServiceName,
}

/// The names for the derived Service of `key`: the plain one if it fits, and the hashed one.
pub fn derived(key: &ServiceKey) -> Candidates {
    Candidates {
        namespace: key.namespace.clone(),
        plain: ServiceName::parse(format!("{}{}", prefix::DERIVED, key.name)).ok(),
        hashed: checked(ServiceName::parse(format!("{}{}", prefix::DERIVED, hash(&[key.name.as_str()])))),
    }
}

impl Candidates {
    /// Chooses the name where the Services `taken` have other owners. `hashed_before` keeps the hashed name after the plain
    /// one has become free: the IP is worth more than the name.
    pub fn choose(&self, taken: &BTreeSet<ServiceKey>, hashed_before: bool) -> Derived {
        let is_taken = |name: &ServiceName| {
            let key = || ServiceKey { namespace: self.namespace.clone(), name: name.clone() };
            !taken.is_empty() && taken.contains(&key())
        };
        let hashed = || self.hashed.clone();
        match &self.plain {
            Some(plain) if !hashed_before && !is_taken(plain) => Derived::Plain(plain.clone()),
            Some(plain) if is_taken(&self.hashed) => {
                Derived::BothTaken { hashed: hashed(), plain: plain.clone() }
            }
            Some(plain) => Derived::PlainTaken { hashed: hashed(), plain: plain.clone() },
            None if is_taken(&self.hashed) => Derived::BothTaken { hashed: hashed(), plain: hashed() },
            None => Derived::TooLong(hashed()),
        }
    }
}

/// Names the copy of `source`'s slice `original`: `<prefix><source>-<original>`, or `<prefix><source>.<hash>` where that is
/// too long, or where another pair could join to the same text (`eu` + `west-x`, `eu-west` + `x`).
///
/// "Could" and not "does": the name then depends on who the members are, and on nothing that any of them says. The longest
/// cluster id that fits keeps the plain name. No cluster can give a slice of its own the name of another's: plain names that
/// start with a longer id and `-` or `.` are not used, and a hashed name differs from every plain one at the dot.
pub fn slice(
    prefix: &str,
    source: &ClusterId,
    original: &SliceName,
    clusters: &BTreeMap<ClusterId, Cluster>,
) -> SliceName {
    let joined = format!("{source}-{original}");
    let dashed = format!("{source}-");
    let longer = clusters
        .range::<str, _>((Bound::Excluded(dashed.as_str()), Bound::Unbounded))
        .map(|(id, _)| id.as_str())
        .take_while(|id| id.starts_with(&dashed));
    let ambiguous = longer
        .into_iter()
        .any(|id| joined.strip_prefix(id).is_some_and(|rest| rest.starts_with('-') || rest.starts_with('.')));
    match SliceName::parse(format!("{prefix}{joined}")) {
        Ok(plain) if !ambiguous => plain,
        Ok(_) | Err(_) => hashed(prefix, source, original),
    }
}

/// Names the copy of a provider's slice that a `MultiClusterService` dispatches: `<provider>-<original>`, as [`slice()`] does it. A
/// provider whose id would make it look like an imported slice always gets the hash.
pub fn dispatched(
    source: &ClusterId,
    original: &SliceName,
    clusters: &BTreeMap<ClusterId, Cluster>,
) -> SliceName {
    let imported =
        source.as_str().strip_prefix("imported").is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    if imported { hashed("", source, original) } else { slice("", source, original, clusters) }
}

fn hashed(prefix: &str, source: &ClusterId, original: &SliceName) -> SliceName {
    let hash = hash(&[source.as_str(), original.as_str()]);
    checked(SliceName::parse(format!("{prefix}{source}.{hash}")))
}

/// Sixteen characters that stand for some texts: the first 80 bits of their SHA-256, in base 32. Names of services and slices come
/// from members: no member can choose two with the same. Frozen: see the module's first line.
fn hash(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text.as_bytes());
        // No name has a zero byte, so that no other texts are the same bytes.
        hasher.update([0]);
    }
    let digest = hasher.finalize();
    let bits = digest.iter().take(10).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    (0..16)
        .map(|i| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[(bits >> (75 - 5 * i)) as usize & 31]))
        .collect()
}

fn checked<T>(name: Result<T, crate::names::BadName>) -> T {
    name.expect("a prefix, a cluster id and a hash fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[&str]) -> BTreeMap<ClusterId, Cluster> {
        ids.iter().map(|id| (ClusterId::parse(*id).unwrap(), Cluster::default())).collect()
    }

    fn named(source: &str, original: &str, ids: &[&str]) -> String {
        let (source, original) = (ClusterId::parse(source).unwrap(), SliceName::parse(original).unwrap());
        slice("imported-", &source, &original, &members(ids)).to_string()
    }

    #[test]
    fn slices_are_named_after_source_and_original() {
        assert_eq!(named("member1", "serve-x7k2", &["member1", "member2"]), "imported-member1-serve-x7k2");
        assert_eq!(named("eu", "web-1", &["eu", "eu-west"]), "imported-eu-web-1");
    }

    #[test]
    fn two_pairs_that_join_to_one_name_get_two() {
        let ids = ["eu", "eu-west"];
        assert_eq!(named("eu-west", "x", &ids), "imported-eu-west-x");
        let other = named("eu", "west-x", &ids);
        assert_eq!(other, "imported-eu.zhpvzaxjvde52q34");
        // Nor can one cluster take the hashed name of another.
        assert_ne!(named("eu", &other["imported-eu-".len()..], &ids), other);
        assert!(named("eu", "west.zhpvzaxjvde52q34", &ids).starts_with("imported-eu."));
    }

    #[test]
    fn no_dispatched_slice_has_the_name_of_an_imported_one() {
        let named = |source: &str, original: &str| {
            let (source, original) = (ClusterId::parse(source).unwrap(), SliceName::parse(original).unwrap());
            dispatched(&source, &original, &members(&["a", "imported", "imported-a", "importer"])).to_string()
        };
        assert_eq!(named("a", "web-1"), "a-web-1");
        assert_eq!(named("importer", "web-1"), "importer-web-1");
        for source in ["imported", "imported-a"] {
            assert!(named(source, "web-1").starts_with(&format!("{source}.")));
        }
        let long = named("a", &"x".repeat(252));
        assert!(long.starts_with("a.") && long.len() == 18, "{long}");
    }

    #[test]
    fn a_long_name_is_hashed() {
        let long = "x".repeat(250);
        let name = named("member1", &long, &["member1"]);
        assert!(name.starts_with("imported-member1.") && name.len() == 33, "{name}");
        assert_ne!(name, named("member1", &"y".repeat(250), &["member1"]));
    }

    /// Two names that the former hash (FNV-1a, 50 bits of it) had one name for; they were found in seconds.
    #[test]
    fn names_prepared_to_collide_get_two_names() {
        let stem = "w".repeat(52);
        let (one, two) = (format!("{stem}oanmfoaa"), format!("{stem}hhhmflaa"));
        assert_ne!(hash(&[&one]), hash(&[&two]));
        let names =
            |name: &str| derived(&ServiceKey::parse("shop", name).unwrap()).choose(&BTreeSet::new(), false);
        assert_ne!(names(&one), names(&two));
        assert_eq!(hash(&["web"]).len(), 16);
    }

    #[test]
    fn the_derived_service_takes_the_first_name_that_is_free_and_keeps_it() {
        let key = ServiceKey::parse("shop", "web").unwrap();
        let name = |text: &str| ServiceName::parse(text).unwrap();
        let (plain, hashed) = (name("derived-web"), name("derived-4ild7vmi66mtyvpd"));
        let taken = |names: &[&ServiceName]| -> BTreeSet<ServiceKey> {
            let key = |n: &&ServiceName| ServiceKey { namespace: key.namespace.clone(), name: (*n).clone() };
            names.iter().map(key).collect()
        };
        let moved = Derived::PlainTaken { hashed: hashed.clone(), plain: plain.clone() };
        for (taken, before, want) in [
            (taken(&[]), false, Derived::Plain(plain.clone())),
            (taken(&[&plain]), false, moved.clone()),
            (taken(&[]), true, moved),
            (
                taken(&[&plain, &hashed]),
                false,
                Derived::BothTaken { hashed: hashed.clone(), plain: plain.clone() },
            ),
        ] {
            assert_eq!(derived(&key).choose(&taken, before), want, "{taken:?} {before}");
        }
        let fits = ServiceKey::parse("shop", &"w".repeat(55)).unwrap();
        assert!(matches!(derived(&fits).choose(&BTreeSet::new(), false), Derived::Plain(_)));
        let long = ServiceKey::parse("shop", &"w".repeat(56)).unwrap();
        assert!(
            matches!(derived(&long).choose(&BTreeSet::new(), false), Derived::TooLong(name) if name.as_str().len() == 24)
        );
    }
}
