//! Maps that have one entry nearly always: a service has one exporter, one derived Service, one slice.

use litemap::LiteMap;

/// A map with room for exactly one entry: a vector that grows by itself starts with room for four.
pub fn for_one<K: Ord, V>() -> LiteMap<K, V> {
    LiteMap::with_capacity(1)
}

/// Makes room for so many entries in a map that is about to get its first.
pub fn make_room<K: Ord, V>(map: &mut LiteMap<K, V>, entries: usize) {
    if map.is_empty() {
        *map = LiteMap::with_capacity(entries);
    }
}

/// Shared maps as maps, for serde.
pub(crate) mod as_map {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use litemap::LiteMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K, V, S>(map: &Arc<LiteMap<K, V>>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize + Ord,
        V: Serialize,
        S: Serializer,
    {
        to.collect_map(map.iter())
    }

    pub(crate) fn deserialize<'de, K, V, D>(from: D) -> Result<Arc<LiteMap<K, V>>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Arc::new(BTreeMap::deserialize(from)?.into_iter().collect()))
    }
}
