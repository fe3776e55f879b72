//! What is remembered of a service, as a `ConfigMap` and back.

use std::collections::BTreeMap;

use atoll_api::names::label;
use atoll_engine::memory::ServiceMemory;
use atoll_engine::names::{BadName, ServiceKey};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

/// On each of them; the hub lists by it.
const KIND: &str = "service";
/// The keys of the data.
const NAMESPACE: &str = "namespace";
const NAME: &str = "name";
const MEMORY: &str = "memory";

/// What is wrong with an entry.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A key is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// It names no service.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The memory itself does not parse.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Selects all entries.
pub(super) fn selector() -> String {
    format!("{}={KIND}", label::MEMORY)
}

/// The name of a service's entry. Neither part has a dot, so no two services share one.
pub(super) fn name(key: &ServiceKey) -> String {
    format!("export.{}.{}", key.namespace, key.name)
}

pub(super) fn write(key: &ServiceKey, memory: &ServiceMemory) -> Result<ConfigMap, serde_json::Error> {
    let text = serde_json::to_string(memory)?;
    let data = [(NAMESPACE, key.namespace.to_string()), (NAME, key.name.to_string()), (MEMORY, text)];
    Ok(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(key)),
            labels: Some(BTreeMap::from([(label::MEMORY.to_owned(), KIND.to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ..ConfigMap::default()
    })
}

pub(super) fn read(map: &ConfigMap) -> Result<(ServiceKey, ServiceMemory), Unreadable> {
    let get =
        |key: &'static str| map.data.as_ref().and_then(|data| data.get(key)).ok_or(Unreadable::Missing(key));
    let key = ServiceKey::parse(get(NAMESPACE)?, get(NAME)?)?;
    Ok((key, serde_json::from_str(get(MEMORY)?)?))
}

#[cfg(test)]
mod tests {
    use atoll_engine::memory::Incumbent;
    use atoll_engine::names::{ClusterId, Uid};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let key = ServiceKey::parse("shop", "web").unwrap();
        let incumbent =
            Incumbent { cluster: ClusterId::parse("paris").unwrap(), uid: Uid::parse("u1").unwrap() };
        let memory = ServiceMemory { incumbent: Some(incumbent), ..ServiceMemory::default() };
        let map = write(&key, &memory).unwrap();
        assert_eq!(map.metadata.name.as_deref(), Some("export.shop.web"));
        assert_eq!(read(&map).unwrap(), (key, memory));
    }

    #[test]
    fn an_entry_that_a_user_spoiled_is_told_apart() {
        let mut map = write(&ServiceKey::parse("shop", "web").unwrap(), &ServiceMemory::default()).unwrap();
        map.data.as_mut().unwrap().insert(NAME.to_owned(), "../x".to_owned());
        assert!(matches!(read(&map), Err(Unreadable::Name(_))));
        map.data.as_mut().unwrap().remove(NAME);
        assert!(matches!(read(&map), Err(Unreadable::Missing(NAME))));
    }
}
