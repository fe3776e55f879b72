//! Which objects a watch has told of: a list that comes again says by silence what is gone.

use std::collections::BTreeSet;

use crate::{Event, Failure};

/// What happens to the objects of a kind, by name.
#[derive(Debug)]
pub enum Change<N, K> {
    /// It is there, as it is now.
    Seen(N, K),
    /// It is gone.
    Gone(N),
    /// Everything that is there has been seen, and what is not there is gone.
    Listed,
    /// Nothing is seen for now; what was known may have changed.
    Failed(Failure),
}

/// The names of all objects that were told as seen and not as gone.
#[derive(Debug)]
pub struct Known<N> {
    names: BTreeSet<N>,
    /// Those of the list that is under way.
    list: Option<BTreeSet<N>>,
}

impl<N> Default for Known<N> {
    fn default() -> Self {
        Self { names: BTreeSet::new(), list: None }
    }
}

impl<N: Ord + Clone> Known<N> {
    /// What an event changes. An object without a `name` is none of ours.
    pub fn take<K, F>(
        &mut self,
        event: Event<K>,
        name: F,
    ) -> impl Iterator<Item = Change<N, K>> + use<N, K, F>
    where
        F: FnOnce(&K) -> Option<N>,
    {
        let (mut change, mut gone) = (None, BTreeSet::new());
        match event {
            Event::ListStarted => {
                // What a list that broke off has told must be told as gone, if the next one does not have it.
                self.names.extend(self.list.replace(BTreeSet::new()).into_iter().flatten());
            }
            Event::Seen(object) => {
                if let Some(name) = name(&object) {
                    self.list.as_mut().unwrap_or(&mut self.names).insert(name.clone());
                    change = Some(Change::Seen(name, object));
                }
            }
            Event::Gone(object) => {
                if let Some(name) = name(&object) {
                    self.names.remove(&name);
                    change = Some(Change::Gone(name));
                }
            }
            Event::Listed => {
                if let Some(list) = self.list.take() {
                    gone = std::mem::replace(&mut self.names, list);
                    gone.retain(|name| !self.names.contains(name));
                }
                change = Some(Change::Listed);
            }
            Event::Following => {}
            Event::Failed(failure) => change = Some(Change::Failed(failure)),
        }
        gone.into_iter().map(Change::Gone).chain(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects that are nothing but a name.
    fn told(known: &mut Known<String>, events: impl IntoIterator<Item = Event<&'static str>>) -> Vec<String> {
        let said = |change| match change {
            Change::Seen(name, _) => format!("+{name}"),
            Change::Gone(name) => format!("-{name}"),
            Change::Listed => "listed".to_owned(),
            Change::Failed(_) => "failed".to_owned(),
        };
        let name = |object: &&str| (!object.is_empty()).then(|| (*object).to_owned());
        events.into_iter().flat_map(|event| known.take(event, name).map(said).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_second_list_says_by_silence_what_is_gone() {
        let mut known = Known::default();
        let first = [Event::ListStarted, Event::Seen("a"), Event::Seen("b"), Event::Listed];
        assert_eq!(told(&mut known, first), ["+a", "+b", "listed"]);
        assert_eq!(told(&mut known, [Event::Following, Event::Seen("c"), Event::Gone("b")]), ["+c", "-b"]);
        let second = [Event::ListStarted, Event::Seen("a"), Event::Seen("d"), Event::Listed];
        assert_eq!(told(&mut known, second), ["+a", "+d", "-c", "listed"]);
    }

    #[test]
    fn nothing_is_gone_before_the_list_is_complete() {
        let mut known = Known::default();
        told(&mut known, [Event::ListStarted, Event::Seen("a"), Event::Listed]);
        let broken = [Event::Failed(Failure::Silent), Event::ListStarted, Event::Failed(Failure::Silent)];
        assert_eq!(told(&mut known, broken), ["failed", "failed"]);
    }

    #[test]
    fn what_a_broken_list_has_told_is_told_as_gone() {
        let mut known = Known::default();
        told(&mut known, [Event::ListStarted, Event::Seen("a"), Event::Failed(Failure::Silent)]);
        assert_eq!(told(&mut known, [Event::ListStarted, Event::Listed]), ["-a", "listed"]);
    }

    #[test]
    fn what_has_no_name_is_not_told() {
        let mut known = Known::default();
        let events = [Event::ListStarted, Event::Seen(""), Event::Listed, Event::Seen(""), Event::Gone("")];
        assert_eq!(told(&mut known, events), ["listed"]);
    }
}
