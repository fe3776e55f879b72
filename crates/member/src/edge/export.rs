//! `ServiceExports` and conditions.

use atoll_api::names::{FIELD_MANAGER, annotation, condition, kind};
use atoll_api::types::ServiceExport;
use atoll_engine::facts::{ExportFact, Liveness, Locality, Pairs};
use atoll_engine::limits::{BYTES, KEYS};
use atoll_engine::names::{Namespace, Uid};
use atoll_engine::time::Time;
use atoll_link::{Field, Problem};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Unreadable, meta};
use crate::core::event::{MisnamedExport, Seen, SeenExport};
use crate::core::object::{ConditionBody, Kind};
use crate::stale::rfc3339;

const LONGEST: usize = BYTES as usize;

/// The conditions of a ServiceExport that are ours to write, by type.
const OURS: [&str; 3] = [condition::export::CONFLICT, condition::export::READY, condition::export::VALID];

/// Reads a ServiceExport.
pub(crate) fn read(export: &ServiceExport, left_out: &mut Vec<Problem>) -> Result<Seen, Unreadable> {
    let version = meta::version(&export.metadata)?;
    let written = export.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    let conditions = conditions(written, &OURS);
    let Ok(key) = meta::key(&export.metadata) else {
        // The API takes more names for exports than for Services.
        let namespace = meta::namespace(&export.metadata)?;
        let name = export.metadata.name.as_deref().unwrap_or_default().into();
        return Ok(Seen::MisnamedExport(MisnamedExport { namespace, name, version, conditions }));
    };
    let annotated = |key: &str| export.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let mut unknown = |field, value: &str| {
        let object = meta::object(Kind::Export, &export.metadata);
        left_out.push(Problem::Unrepresentable { object, field, why: format!("{value:?} is not known") });
    };
    let liveness = annotated(annotation::LIVENESS).and_then(|value| {
        let known = Liveness::parse(value);
        if known.is_none() {
            unknown(Field::Liveness, value);
        }
        known
    });
    let locality = annotated(annotation::LOCALITY).and_then(|value| {
        let known = Locality::parse(value);
        if known.is_none() {
            unknown(Field::Locality, value);
        }
        known
    });
    let created = export.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_millisecond());
    let fact = ExportFact {
        uid: version.uid.clone(),
        created: Time(created),
        labels: pairs(&export.spec.exported_labels),
        annotations: pairs(&export.spec.exported_annotations),
        liveness,
        locality,
    };
    Ok(Seen::Export(SeenExport { key, version, fact, conditions }))
}

/// No more than can be seen to be too much: a megabyte of annotations is not kept to be refused.
fn pairs(map: &std::collections::BTreeMap<String, String>) -> Pairs {
    let mut kept = Pairs::new();
    let mut size = 0;
    for (key, value) in map {
        if size > LONGEST || kept.len() > KEYS as usize {
            break;
        }
        let cut = |text: &str| -> std::sync::Arc<str> {
            text.get(..text.floor_char_boundary(LONGEST + 1)).unwrap_or_default().into()
        };
        size += key.len() + value.len();
        kept.insert(cut(key), cut(value));
    }
    kept
}

/// The conditions of some types, by type.
pub(crate) fn conditions(written: &[Condition], types: &[&'static str]) -> Vec<ConditionBody> {
    let mut found: Vec<ConditionBody> = written
        .iter()
        .filter_map(|condition| {
            let kind = types.iter().find(|kind| **kind == condition.type_)?;
            Some(ConditionBody {
                kind: (*kind).into(),
                status: match condition.status.as_str() {
                    "True" => Some(true),
                    "False" => Some(false),
                    _ => None,
                },
                reason: condition.reason.clone(),
                message: condition.message.clone(),
                since: Time(condition.last_transition_time.0.as_millisecond()),
            })
        })
        .collect();
    found.sort_by(|a, b| a.kind.cmp(&b.kind));
    found
}

/// A condition to be written.
pub(crate) fn write_condition(condition: &ConditionBody) -> serde_json::Value {
    let status = match condition.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    serde_json::json!({
        "type": &*condition.kind,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": rfc3339(condition.since),
    })
}

/// What is applied to the status of a ServiceExport. Conditions of ours that are not named in it go.
pub(crate) fn write_status(
    namespace: &Namespace,
    name: &str,
    uid: Option<&Uid>,
    conditions: &[ConditionBody],
) -> serde_json::Value {
    debug_assert_eq!(FIELD_MANAGER, "atoll");
    let mut object = serde_json::json!({
        "apiVersion": format!("{}/{}", kind::mcs::GROUP, kind::mcs::V1BETA1),
        "kind": kind::mcs::SERVICE_EXPORT,
        "metadata": {"name": name, "namespace": namespace.as_str()},
    });
    if let Some(uid) = uid {
        object["metadata"]["uid"] = uid.as_str().into();
    }
    if !conditions.is_empty() {
        object["status"] =
            serde_json::json!({"conditions": conditions.iter().map(write_condition).collect::<Vec<_>>()});
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabyte_of_annotations_is_not_kept_to_be_refused() {
        let map = |entries: &[(&str, usize)]| {
            entries.iter().map(|(key, size)| ((*key).to_owned(), "é".repeat(*size))).collect()
        };
        let kept = pairs(&map(&[("a", 600_000), ("b", 600_000)]));
        assert_eq!(kept.len(), 1);
        let size = atoll_engine::limits::bytes(&kept);
        assert!(size > LONGEST && size < 2 * LONGEST, "{size}: still seen to be too much");
        let honest = map(&[("a", 100), ("b", 100)]);
        assert_eq!(pairs(&honest).len(), 2);
    }

    #[test]
    fn an_export_that_no_service_can_be_called_like_is_still_read() {
        for (name, good) in [("web", true), ("a.b", false)] {
            let export = serde_json::json!({
                "metadata": {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "5"},
            });
            let export: ServiceExport = serde_json::from_value(export).unwrap();
            match read(&export, &mut Vec::new()).unwrap() {
                Seen::Export(seen) => assert!(good && seen.key.name.as_str() == name),
                Seen::MisnamedExport(seen) => assert!(!good && &*seen.name == name),
                other => panic!("{other:?}"),
            }
        }
    }
}
