//! Labels and annotations that an export gives to the ServiceImport. They are a user's text: keys that mean something to
//! Kubernetes or to us are refused, and so is what an API server would not take, or the import could not be written at all.

use std::sync::Arc;

use atoll_api::names::is_reserved;

use crate::facts::Pairs;
use crate::names::syntax;
use crate::reason::{KeyRefused, WhyKeyRefused};

/// An object carries 256 KiB of annotations; some of it is for our own.
const LIMIT: usize = 240 * 1024;

/// Which of the two the pairs are; a label's value has a syntax, an annotation's has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Labels.
    Label,
    /// Annotations.
    Annotation,
}

/// Parts the pairs that travel from those that do not.
pub fn sift(pairs: &Pairs, kind: Kind) -> (Pairs, Vec<KeyRefused>) {
    let mut travel = Pairs::new();
    let mut refused = Vec::new();
    let mut size = 0;
    for (key, value) in pairs {
        let well_formed = syntax::is_qualified_name(key)
            && match kind {
                Kind::Label => syntax::is_label_value(value),
                Kind::Annotation => true,
            };
        if !well_formed {
            refused.push(KeyRefused { key: Arc::clone(key), why: WhyKeyRefused::Malformed });
        } else if is_reserved(key) {
            refused.push(KeyRefused { key: Arc::clone(key), why: WhyKeyRefused::Reserved });
        } else if size + key.len() + value.len() > LIMIT {
            refused.push(KeyRefused { key: Arc::clone(key), why: WhyKeyRefused::TooMuch });
        } else {
            size += key.len() + value.len();
            travel.insert(Arc::clone(key), Arc::clone(value));
        }
    }
    (travel, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_one_object_stays_behind() {
        let long: Arc<str> = "x".repeat(LIMIT / 2).into();
        let pairs: Pairs = ["a", "b", "c"].map(|key| (key.into(), Arc::clone(&long))).into();
        let (travel, refused) = sift(&pairs, Kind::Annotation);
        assert_eq!(travel.len(), 1);
        assert!(refused.iter().all(|r| r.why == WhyKeyRefused::TooMuch) && refused.len() == 2);
    }

    #[test]
    fn reserved_and_malformed_keys_stay_behind() {
        use WhyKeyRefused::{Malformed, Reserved};
        for (key, value, label, annotation) in [
            ("team", "shop", None, None),
            ("example.com/team", "shop", None, None),
            ("notk8s.io/team", "shop", None, None),
            ("k8s.io", "shop", None, None),
            ("k8s.io/team", "shop", Some(Reserved), Some(Reserved)),
            ("x.kubernetes.io/team", "shop", Some(Reserved), Some(Reserved)),
            ("atoll.dev/liveness", "Retain", Some(Reserved), Some(Reserved)),
            ("two words", "shop", Some(Malformed), Some(Malformed)),
            ("team", "two words", Some(Malformed), None),
        ] {
            for (kind, want) in [(Kind::Label, label), (Kind::Annotation, annotation)] {
                let pairs = Pairs::from([(key.into(), value.into())]);
                let (travel, refused) = sift(&pairs, kind);
                assert_eq!(refused.first().map(|r| r.why), want, "{key} {value} {kind:?}");
                assert_eq!(travel.is_empty(), want.is_some(), "{key} {value} {kind:?}");
            }
        }
    }
}
