//! Orphans: what was left behind by a deletion that spared it gets an owner again if it fits one.

use super::action::{Action, Kind};
use super::facts::Meta;
use atoll_apimachinery::selector::labels::Selector;
use serde_json::{Value, json};

/// May an object be taken over by something with this selector?
pub(crate) fn fits(selector: &Selector, owner: &Meta, orphan: &Meta) -> bool {
    // A selector that selects everything is a mistake, and no reason to take what is not ours.
    orphan.is_orphan
        && !orphan.going
        && !owner.going
        && !selector.is_empty()
        && selector.matches(&orphan.labels)
}

/// Gives an orphan its owner.
pub(crate) fn adopt(kind: Kind, orphan: &Meta, owner: &Value) -> Action {
    let body = json!({"metadata": {"ownerReferences": [owner]}});
    Action::Patch { kind, target: orphan.into(), status: false, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_living_orphan_with_the_right_labels_is_adopted() {
        let selector = Selector::parse("app=web").unwrap();
        let orphan = |app: &str, change: fn(&mut Meta)| {
            let labels = [("app".to_owned(), app.to_owned())].into();
            let mut meta = Meta { labels, is_orphan: true, ..Meta::default() };
            change(&mut meta);
            meta
        };
        let owner = Meta::default();
        assert!(fits(&selector, &owner, &orphan("web", |_| {})));
        assert!(!fits(&selector, &owner, &orphan("shop", |_| {})));
        assert!(!fits(&selector, &owner, &orphan("web", |meta| meta.is_orphan = false)));
        assert!(!fits(&selector, &owner, &orphan("web", |meta| meta.going = true)));
        assert!(!fits(&Selector::default(), &owner, &orphan("web", |_| {})));
    }
}
