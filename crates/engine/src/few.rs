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
