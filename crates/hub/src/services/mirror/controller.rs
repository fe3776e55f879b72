//! The mirror for one time of leadership: what was planned becomes copies in the hub's API, after the members have theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_engine::names::ServiceKey;
use kube::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::{Mirror, list, watch};
use crate::mcs;
use crate::membership::roster::Roster;
use crate::policies::Policies;
use crate::services::brain::Brain;

/// A service is exported through the hub, or not any more; none: all that are have been said.
pub(crate) type Exported = Option<(ServiceKey, bool)>;

/// The running controller.
pub(crate) struct Controller {
    core: Mirror,
    /// Services whose copies in the hub have to be looked at.
    news: BTreeSet<ServiceKey>,
    /// Whether all services that are exported through the hub have been said.
    exports_known: bool,
    /// The uid of the cluster whose API is the hub's.
    hub: Arc<str>,
    writes: UnboundedSender<mcs::Command>,
}

impl Controller {
    /// Lists the copies there are, then watches what is exported through the hub.
    pub(crate) async fn start(
        client: &Client,
        watches: Client,
        hub: Arc<str>,
        writes: UnboundedSender<mcs::Command>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(Self, UnboundedReceiver<Exported>), kube::Error> {
        let mut core = Mirror::default();
        let news = list(client, &hub).await?.iter().filter_map(|copy| core.recall(copy)).collect();
        let (exported, exports) = unbounded_channel();
        tasks.spawn(watch(watches, exported));
        Ok((Self { core, news, exports_known: false, hub, writes }, exports))
    }

    /// What is exported through the hub has changed.
    pub(crate) fn exported(&mut self, change: Exported) {
        match change {
            Some((key, exported)) => {
                self.news.insert(key.clone());
                self.core.exported(key, exported);
            }
            None => self.exports_known = true,
        }
    }

    /// These services were planned anew.
    pub(crate) fn planned(&mut self, keys: &BTreeSet<ServiceKey>) {
        self.news.extend(keys.iter().cloned());
    }

    /// Brings the copies up to date, and says why clusters lack an import that the hub asks for.
    pub(crate) fn show(&mut self, brain: &Brain, roster: &Roster, policies: &Policies) {
        for key in &self.news {
            if let Some(absent) = brain.absent(key) {
                policies.absent(key.clone(), absent);
            }
        }
        if !self.exports_known || !roster.listed() {
            return; // one that is not known yet is not gone
        }
        if roster.has(&self.hub) {
            // The hub's API is a member's: what is exported there is exported by that member, and its own import has the copies' names.
            self.news.clear();
            return;
        }
        for key in std::mem::take(&mut self.news) {
            for command in self.core.look_at(&key, brain.plan_of(&key)) {
                let _ = self.writes.send(mcs::Command::Mirror(command));
            }
        }
    }
}
