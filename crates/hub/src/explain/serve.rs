//! The group `explain.atoll.dev`, as API servers serve it. Each call becomes a question to the leader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use atoll_api::names::kind::explain;
use atoll_kubeapi::aggregated::{Call, Group, Handler, Kind, Reply, Replying};

use super::{Answered, Asked, Questions, Verb};

/// Questions of one user that are answered at once: others must find room in the leader's queue.
const PER_USER: usize = 8;

/// The group, for an API server that serves it.
pub fn group(questions: Questions) -> Group {
    let verdict = || {
        let columns = [("Verdict", ".verdict.code"), ("Message", ".verdict.message")];
        columns.map(|(name, path)| (name.to_owned(), path.to_owned())).to_vec()
    };
    let kind = |kind: &str, plural: &str, namespaced, verbs, columns| Kind {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        verbs,
        columns,
    };
    Group {
        name: explain::GROUP.to_owned(),
        version: explain::VERSION.to_owned(),
        kinds: vec![
            kind(explain::SERVICE_EXPLANATION, explain::SERVICES, true, &["get", "list"], verdict()),
            kind(explain::ADDRESS_EXPLANATION, explain::ADDRESSES, false, &["get"], verdict()),
            kind(explain::CLUSTERSET_STATUS, explain::CLUSTERSETS, false, &["get", "list"], verdict()),
            kind(explain::PLAN, explain::PLANS, false, &["create"], Vec::new()),
        ],
        handler: Arc::new(Asking { questions, under_way: Arc::default() }),
    }
}

/// Asks the leader.
struct Asking {
    questions: Questions,
    /// How many questions of whom are under way. Users without any are not in it.
    under_way: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Handler for Asking {
    fn answer(&self, call: Call) -> Replying<'_> {
        Box::pin(async move {
            let Some(_turn) = Turn::take(&self.under_way, &call.user.name) else {
                let message =
                    format!("{PER_USER} questions of this user are being answered; ask again in a moment");
                return reply(Answered::refused(429, "TooManyRequests", message));
            };
            let verb = match call.verb {
                "list" => Verb::List,
                "create" => Verb::Create,
                _ => Verb::Get,
            };
            let Call { resource, namespace, name, query, body, .. } = call;
            reply(self.questions.ask(Asked { verb, resource, namespace, name, query, body }).await)
        })
    }
}

fn reply(answered: Answered) -> Reply {
    Reply { status: answered.status, body: answered.body }
}

/// A user's question under way; over when it is dropped.
struct Turn {
    under_way: Arc<Mutex<BTreeMap<String, usize>>>,
    user: String,
}

impl Turn {
    fn take(under_way: &Arc<Mutex<BTreeMap<String, usize>>>, user: &str) -> Option<Self> {
        let mut all = under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(user.to_owned()).or_default();
        if *own >= PER_USER {
            return None;
        }
        *own += 1;
        Some(Self { under_way: Arc::clone(under_way), user: user.to_owned() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_turns_and_leaves_nothing_behind() {
        let under_way = Arc::default();
        let turns: Vec<Turn> = (0..PER_USER).filter_map(|_| Turn::take(&under_way, "joe")).collect();
        assert_eq!(turns.len(), PER_USER);
        assert!(Turn::take(&under_way, "joe").is_none());
        assert!(Turn::take(&under_way, "ann").is_some(), "one user does not take the turns of others");
        drop(turns);
        assert!(under_way.lock().unwrap().is_empty());
    }

    fn call(user: &str) -> Call {
        Call {
            user: atoll_kubeapi::authn::User::authenticated(user, []),
            verb: "get",
            resource: explain::SERVICES.to_owned(),
            namespace: Some("shop".to_owned()),
            name: Some("web".to_owned()),
            query: Vec::new(),
            body: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_user_is_refused_and_others_are_answered() {
        let questions = Questions::default();
        let handler = group(questions.clone()).handler;
        assert_eq!(handler.answer(call("joe")).await.status, 503, "no hub leads");
        let mut leader = questions.hear();
        let flood: Vec<_> = (0..100)
            .map(|_| {
                tokio::spawn({
                    let handler = Arc::clone(&handler);
                    async move { handler.answer(call("joe")).await.status }
                })
            })
            .collect();
        let other = tokio::spawn({
            let handler = Arc::clone(&handler);
            async move { handler.answer(call("ann")).await.status }
        });
        for _ in 0..=PER_USER {
            let question = leader.recv().await.unwrap();
            let namespace = question.asked.namespace.clone().unwrap();
            question.answer.send(Answered::found(namespace.into())).unwrap();
        }
        assert_eq!(other.await.unwrap(), 200);
        let mut told = BTreeMap::new();
        for one in flood {
            *told.entry(one.await.unwrap()).or_insert(0) += 1;
        }
        assert_eq!(told, BTreeMap::from([(200, PER_USER), (429, 100 - PER_USER)]));
    }
}
