//! Volumes, claims, classes.

use super::object::{Object, UNSET, text};
use serde_json::Value;

fn phase(object: &Object<'_>) -> Value {
    if object.deleted() { "Terminating".into() } else { object.text("status.phase").into() }
}

fn class_name(object: &Object<'_>) -> Value {
    let annotations = object.field("metadata.annotations").unwrap_or(&Value::Null);
    match text(annotations, "volume.beta.kubernetes.io/storage-class") {
        "" => object.text("spec.storageClassName").into(),
        annotated => annotated.into(),
    }
}

fn modes(object: &Object<'_>, path: &str) -> Value {
    const SHORT: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| object.items(path).iter().any(|one| one == mode);
    SHORT.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",").into()
}

pub(super) fn volume(object: &Object<'_>) -> Vec<Value> {
    let claim = match object.field("spec.claimRef") {
        Some(claim) => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
        None => String::new(),
    };
    vec![
        object.name(),
        object.text_or("spec.capacity.storage", "0").into(),
        modes(object, "spec.accessModes"),
        object.text("spec.persistentVolumeReclaimPolicy").into(),
        phase(object),
        claim.into(),
        class_name(object),
        object.text_or("spec.volumeAttributesClassName", UNSET).into(),
        object.text("status.reason").into(),
        object.age(),
        object.text_or("spec.volumeMode", UNSET).into(),
    ]
}

pub(super) fn claim(object: &Object<'_>) -> Vec<Value> {
    let bound = !object.text("spec.volumeName").is_empty();
    let (capacity, access) = if bound {
        (object.text_or("status.capacity.storage", "0").into(), modes(object, "status.accessModes"))
    } else {
        ("".into(), "".into())
    };
    vec![
        object.name(),
        phase(object),
        object.text("spec.volumeName").into(),
        capacity,
        access,
        class_name(object),
        object.text_or("spec.volumeAttributesClassName", UNSET).into(),
        object.age(),
        object.text_or("spec.volumeMode", UNSET).into(),
    ]
}

pub(super) fn class(object: &Object<'_>) -> Vec<Value> {
    let annotations = object.field("metadata.annotations").unwrap_or(&Value::Null);
    let default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| text(annotations, key) == "true");
    let name = format!("{}{}", object.text("metadata.name"), if default { " (default)" } else { "" });
    vec![
        name.into(),
        object.text("provisioner").into(),
        object.text_or("reclaimPolicy", "Delete").into(),
        object.text_or("volumeBindingMode", "Immediate").into(),
        object.flag("allowVolumeExpansion").into(),
        object.age(),
    ]
}
