//! The Service of a `MultiClusterService`, which is a template like any other.

use atoll_engine::names::ServiceKey;
use atoll_engine::placement::Change;
use atoll_engine::placement::object::Kind;

use super::super::{Copied, Implied, binding, edge, implied};
use super::{Command, Propagator};

impl Propagator {
    /// Takes in what a `MultiClusterService` asks for its Service, or that there is none any more.
    pub(in crate::policies) fn imply(&mut self, key: ServiceKey, implied: Option<&Implied>) {
        let template = implied::template(&key);
        let policy = implied.and_then(|Implied { intent, author }| {
            implied::policy(&key, intent, edge::stamp(author.as_deref(), self.rules.stamps))
        });
        self.implied_refused.remove(&template);
        self.placer.apply(Change::Policy(implied::id(&key), policy.map(Box::new)));
        match implied {
            Some(_) => {
                self.implied.entry(template.clone()).or_insert((key, Copied::Unknown));
                self.implied_news.insert(template);
            }
            None => {
                self.implied.remove(&template);
                self.implied_news.remove(&template);
            }
        }
    }

    /// Says what became of the Services of `MultiClusterServices`, where that is new.
    pub(super) fn tell_implied(&mut self) {
        if !self.known.contains(&Kind::new("v1", "Service")) {
            return; // one that is not known yet is not absent
        }
        for template in std::mem::take(&mut self.implied_news) {
            let item = self.items.get(&template);
            let copied = match (self.placer.template(&template), item.and_then(|item| item.placed.as_ref())) {
                (None, _) => Copied::NoTemplate,
                (Some(_), None) => match self.implied_refused.get(&template) {
                    Some(why) => Copied::Refused(why.clone()),
                    None => Copied::Unknown,
                },
                (Some(_), Some(placed)) => {
                    let holders = item.into_iter().flat_map(|item| &item.holders);
                    // One that has yet to speak is neither well nor ill.
                    let each = holders
                        .filter(|(id, held)| placed.copies.contains_key(*id) && !self.is_awaited(id, held));
                    Copied::Each(each.map(|(id, held)| (id.clone(), binding::applied(held))).collect())
                }
            };
            let Some((key, told)) = self.implied.get_mut(&template) else { continue };
            if *told != copied {
                told.clone_from(&copied);
                self.out.push(Command::Copied(key.clone(), copied));
            }
        }
    }
}
