//! What exports and imports say of the other clusters, by name. At most [`MOST_NAMED`] are named, in an order that stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::{address_refused, export_message, import_message, import_note, refused_keys_text};
use crate::names::{ClusterId, Namespace};
use crate::plan::{ExportStatus, Import};
use crate::reason::reach::{MOST_NAMED, NotImported, Reach};
use crate::reason::{ExportReady, ImportReady};

/// Some names, and how many more there are.
pub fn some<T: Display>(named: impl IntoIterator<Item = T>, of: usize) -> String {
    let named: Vec<String> = named.into_iter().take(MOST_NAMED).map(|one| one.to_string()).collect();
    let more = of.saturating_sub(named.len());
    let named = named.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// The message of an export's `Ready` in the cluster `here`, which itself `imports` it or not.
pub fn exported_message(
    status: &ExportStatus,
    namespace: &Namespace,
    here: &ClusterId,
    imports: bool,
) -> String {
    let (ExportReady::Exported { refused }, Some(reach)) = (&status.ready, &status.reach) else {
        return export_message(&status.ready, &status.refused_keys);
    };
    let mut text = reached(reach, namespace, here, imports);
    if let Some(why) = refused {
        text.push_str(&format!(" Endpoints with {} are left out.", address_refused(*why)));
    }
    refused_keys_text(&status.refused_keys, &mut text);
    text
}

fn reached(reach: &Reach, namespace: &Namespace, here: &ClusterId, imports: bool) -> String {
    let others = reach.imported.saturating_sub(usize::from(imports));
    let mut text = match (others, reach.lacking + reach.fenced, reach.awaited) {
        (0, 0, true) => "Exported; the other clusters have not been heard from yet.".to_owned(),
        (0, 0, false) => "Exported; no other cluster has joined yet.".to_owned(),
        (0, _, _) => format!("Exported, but no other cluster imports it: {}.", without(reach, namespace)),
        (_, 0, _) => format!("Exported; imported by {}.", importers(reach, here, others)),
        (_, _, _) => format!(
            "Exported; imported by {}; not by {}.",
            importers(reach, here, others),
            without(reach, namespace)
        ),
    };
    if reach.without.iter().any(|(_, why)| *why == NotImported::NoNamespace) {
        text.push_str(&format!(" To import the service there, create the namespace {namespace}."));
    }
    text
}

fn importers(reach: &Reach, here: &ClusterId, others: usize) -> String {
    some(reach.importers.iter().filter(|one| *one != here), others)
}

/// Those that do not import it, by reason.
fn without(reach: &Reach, namespace: &Namespace) -> String {
    let mut by_reason: BTreeMap<NotImported, Vec<&ClusterId>> = BTreeMap::new();
    for (cluster, why) in &reach.without {
        by_reason.entry(*why).or_default().push(cluster);
    }
    let mut parts: Vec<String> = by_reason
        .iter()
        .map(|(why, those)| format!("{} ({})", some(those, those.len()), not_imported(*why, namespace)))
        .collect();
    let more = reach.lacking.saturating_sub(reach.without.len());
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if reach.fenced > 0 {
        let clusters = if reach.fenced == 1 { "cluster" } else { "clusters" };
        parts.push(format!("{} {clusters} (the hub's operator does not allow it)", reach.fenced));
    }
    parts.join(", ")
}

/// Why a cluster does not import a service that is exported.
pub fn not_imported(why: NotImported, namespace: &Namespace) -> String {
    match why {
        NotImported::NoNamespace => format!("no namespace {namespace}"),
        NotImported::NamespaceTerminating => format!("its namespace {namespace} is being deleted"),
        NotImported::NotAsked => "no ServiceImport of the hub is propagated to it".to_owned(),
        NotImported::NotHeard => "lost since the hub started".to_owned(),
        NotImported::NoFamily => "it supports none of the service's IP families".to_owned(),
        NotImported::NamesTaken => {
            "other Services there have the names of the derived Service; see its ServiceImport".to_owned()
        }
        NotImported::NoSuchPort => "the service has none of the ports in the hub's ServiceImport".to_owned(),
    }
}

/// The message of an import's `Ready`, if nothing else stands in its way: the sources by name, those that are `stale` with since when,
/// and those that are `lost` and serve nothing any more.
pub fn imported_message(
    import: &Import,
    stale: &BTreeMap<ClusterId, String>,
    lost: &BTreeSet<ClusterId>,
) -> String {
    if import.ready != ImportReady::Ready {
        return import_message(&import.ready, &import.notes);
    }
    let (gone, serving): (Vec<&ClusterId>, Vec<&ClusterId>) =
        import.clusters.iter().partition(|source| lost.contains(*source));
    let named = |source: &&ClusterId| match stale.get(*source) {
        Some(since) => format!("{source} (stale since {since})"),
        None => source.to_string(),
    };
    // What is wrong is named before the rest is only counted.
    let (old, fresh): (Vec<&ClusterId>, Vec<&ClusterId>) =
        serving.iter().copied().partition(|source| stale.contains_key(*source));
    let those: Vec<String> = match serving.len() > MOST_NAMED {
        true => old.iter().chain(&fresh).map(named).collect(),
        false => serving.iter().map(named).collect(),
    };
    let mut text = match (serving.len(), gone.len()) {
        (0, 0) => "The service is imported.".to_owned(),
        (0, _) => format!(
            "Nothing is imported now: {} exports the service, is lost, and its endpoints are withdrawn. They come back with the cluster.",
            some(&gone, gone.len())
        ),
        (of, 0) => format!("Imported from {}.", some(those, of)),
        (of, _) => format!(
            "Imported from {}; not from {} (lost; endpoints withdrawn).",
            some(those, of),
            some(&gone, gone.len())
        ),
    };
    if !old.is_empty() {
        text.push_str(
            " The endpoints of a stale source may be out of date: the hub does not reach that cluster.",
        );
    }
    for note in &import.notes {
        text.push(' ');
        text.push_str(&import_note(note));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{InternalTrafficPolicy, Pairs, SessionAffinity};
    use crate::fixture::id;
    use crate::names::Uid;
    use crate::plan::ImportSpec;
    use crate::reason::{ImportNote, KeyRefused, WhyKeyRefused};
    use std::sync::Arc;

    fn spec() -> Arc<ImportSpec> {
        Arc::new(ImportSpec {
            headless: false,
            ports: Vec::new(),
            session_affinity: SessionAffinity::None,
            client_ip_timeout: None,
            internal_traffic_policy: InternalTrafficPolicy::Cluster,
            traffic_distribution: None,
            labels: Pairs::new(),
            annotations: Pairs::new(),
        })
    }

    fn status(reach: Reach) -> ExportStatus {
        ExportStatus {
            uid: Uid::parse("u").unwrap(),
            valid: Ok(()),
            ready: ExportReady::Exported { refused: None },
            conflicts: None,
            refused_keys: Vec::new(),
            reach: Some(Arc::new(reach)),
        }
    }

    /// `a b+ c-`: with a plus the cluster imports, with a minus it lacks the namespace, with a star it is not asked for.
    fn reach(text: &str) -> Reach {
        let mut reach = Reach::default();
        for word in text.split_whitespace() {
            let (name, mark) = word.split_at(word.len() - 1);
            let imports = match mark {
                "+" => Ok(()),
                "-" => Err(NotImported::NoNamespace),
                _ => Err(NotImported::NotAsked),
            };
            reach.add(&id(name), imports);
        }
        reach
    }

    #[test]
    fn an_export_names_who_imports_it_and_who_does_not_and_why() {
        let prod = Namespace::parse("prod").unwrap();
        for (clusters, want) in [
            ("m1+", "Exported; no other cluster has joined yet."),
            ("m1+ m2+", "Exported; imported by m2."),
            (
                "m1+ m2+ m3-",
                "Exported; imported by m2; not by m3 (no namespace prod). To import the service there, create the namespace prod.",
            ),
            (
                "m1+ m2- m3* m4-",
                "Exported, but no other cluster imports it: m2, m4 (no namespace prod), m3 (no ServiceImport of the hub is propagated to it). To import the service there, create the namespace prod.",
            ),
            (
                "m0+ m1+ m2+ m3+ m4+ m5+ m6+ m7+ m8+ m9+",
                "Exported; imported by m0, m2, m3, m4, m5, m6, m7, m8 and 1 more.",
            ),
            (
                "m1+ n0- n1- n2- n3- n4- n5- n6- n7- n8- n9-",
                "Exported, but no other cluster imports it: n0, n1, n2, n3, n4, n5, n6, n7 (no namespace prod), 2 more. To import the service there, create the namespace prod.",
            ),
        ] {
            assert_eq!(
                exported_message(&status(reach(clusters)), &prod, &id("m1"), true),
                want,
                "{clusters}"
            );
        }
    }

    #[test]
    fn clusters_that_the_operator_keeps_out_are_counted_and_not_named() {
        let prod = Namespace::parse("prod").unwrap();
        let reach = Reach { fenced: 2, ..reach("m1+ m2+") };
        assert_eq!(
            exported_message(&status(reach), &prod, &id("m1"), true),
            "Exported; imported by m2; not by 2 clusters (the hub's operator does not allow it)."
        );
    }

    #[test]
    fn what_is_left_out_of_an_export_is_said_after_who_imports_it() {
        let prod = Namespace::parse("prod").unwrap();
        let mut status = status(reach("m1+ m2+"));
        status.ready = ExportReady::Exported { refused: Some(crate::network::AddressRefused::Loopback) };
        status.refused_keys = vec![KeyRefused { key: "k8s.io/x".into(), why: WhyKeyRefused::Reserved }];
        assert_eq!(
            exported_message(&status, &prod, &id("m1"), true),
            "Exported; imported by m2. Endpoints with a loopback address are left out. Exported label or annotation \"k8s.io/x\" is not exported: its prefix is reserved."
        );
    }

    #[test]
    fn an_import_names_its_sources_and_what_is_wrong_with_each() {
        let import = |sources: &[&str]| Import {
            spec: spec(),
            families: Vec::new(),
            derived: None,
            clusters: sources.iter().map(|one| id(one)).collect(),
            ready: ImportReady::Ready,
            notes: Vec::new(),
            stale: BTreeMap::new(),
        };
        let at = |names: &[&str]| names.iter().map(|one| (id(one), "07:08".to_owned())).collect();
        let old = " The endpoints of a stale source may be out of date: the hub does not reach that cluster.";
        for (sources, stale, lost, want) in [
            (&["paris"][..], &[][..], &[][..], "Imported from paris.".to_owned()),
            (&["paris"], &["paris"], &[], format!("Imported from paris (stale since 07:08).{old}")),
            (
                &["paris", "oslo"],
                &["paris"],
                &[],
                format!("Imported from paris (stale since 07:08), oslo.{old}"),
            ),
            (
                &["paris", "oslo"],
                &[],
                &["paris"],
                "Imported from oslo; not from paris (lost; endpoints withdrawn).".to_owned(),
            ),
            (
                &["paris"],
                &[],
                &["paris"],
                "Nothing is imported now: paris exports the service, is lost, and its endpoints are withdrawn. They come back with the cluster.".to_owned(),
            ),
        ] {
            let lost = lost.iter().map(|one| id(one)).collect();
            assert_eq!(imported_message(&import(sources), &at(stale), &lost), want, "{sources:?}");
        }
        let mut noted = import(&["paris"]);
        noted.notes.push(ImportNote::LocalWithoutOwnEndpoints);
        assert!(
            imported_message(&noted, &BTreeMap::new(), &BTreeSet::new())
                .starts_with("Imported from paris. internalTrafficPolicy is Local")
        );
    }

    #[test]
    fn a_stale_source_is_named_however_many_sources_there_are() {
        let sources: Vec<ClusterId> = (10..40).map(|n| id(&format!("m{n}"))).collect();
        let import = Import {
            spec: spec(),
            families: Vec::new(),
            derived: None,
            clusters: sources.into(),
            ready: ImportReady::Ready,
            notes: Vec::new(),
            stale: BTreeMap::new(),
        };
        let stale = BTreeMap::from([(id("m39"), "07:08".to_owned())]);
        let text = imported_message(&import, &stale, &BTreeSet::new());
        assert!(text.starts_with("Imported from m39 (stale since 07:08), m10, "), "{text}");
        assert!(text.contains("m16 and 22 more."), "{text}");
    }
}
