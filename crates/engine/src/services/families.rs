//! Which IP families a service has, and which of them an importer can have.

use crate::network::Family;

/// The families of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Families {
    /// In the winner's order; never empty.
    pub used: Vec<Family>,
    /// The exports that lack one of them, by their places; any is an `IPFamilyConflict`.
    pub disagree: Vec<usize>,
}

/// What all exports have, in the order of the first; or else what the first has. An export that names no family has no say.
pub fn merge<'a>(exports: impl Iterator<Item = &'a [Family]> + Clone) -> Families {
    let placed = exports.clone().enumerate();
    let exports = exports.filter(|families| !families.is_empty());
    let mut first: Vec<Family> = Vec::new();
    for family in exports.clone().next().unwrap_or(&[Family::V4]) {
        if !first.contains(family) {
            first.push(*family);
        }
    }
    let common: Vec<Family> = first
        .iter()
        .copied()
        .filter(|family| exports.clone().all(|export| export.contains(family)))
        .collect();
    if !common.is_empty() {
        return Families { used: common, disagree: Vec::new() };
    }
    let lacks = |export: &[Family]| first.iter().any(|family| !export.contains(family));
    let disagree =
        placed.filter(|(_, export)| !export.is_empty() && lacks(export)).map(|(at, _)| at).collect();
    Families { used: first, disagree }
}

/// The service's families that an importer supports, and the others.
pub fn cut(families: &[Family], supported: &[Family]) -> (Vec<Family>, Vec<Family>) {
    families.iter().partition(|family| supported.contains(family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Family::{V4, V6};

    #[test]
    fn a_family_counts_if_all_exports_have_it() {
        for (exports, used, disagree) in [
            (&[&[V4][..]][..], &[V4][..], &[][..]),
            (&[&[V6, V4], &[V4, V6]], &[V6, V4], &[]),
            (&[&[V4, V6], &[V6]], &[V6], &[]),
            (&[&[V4], &[V6]], &[V4], &[1]),
            (&[&[V4, V6], &[V6], &[V4]], &[V4, V6], &[1, 2]),
            (&[&[V4], &[], &[V6]], &[V4], &[2]),
            (&[&[], &[V6]], &[V6], &[]),
            (&[&[V4, V4]], &[V4], &[]),
            (&[&[]], &[V4], &[]),
        ] {
            let want = Families { used: used.to_vec(), disagree: disagree.to_vec() };
            assert_eq!(merge(exports.iter().copied()), want, "{exports:?}");
        }
    }

    #[test]
    fn an_importer_gets_the_families_it_supports_in_the_services_order() {
        assert_eq!(cut(&[V6, V4], &[V4, V6]), (vec![V6, V4], vec![]));
        assert_eq!(cut(&[V6, V4], &[V4]), (vec![V4], vec![V6]));
        assert_eq!(cut(&[V6], &[V4]), (vec![], vec![V6]));
    }
}
