//! The way of a question from a server to the leader's task, and back.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::names::kind::explain;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

/// Questions that wait at most. More are refused: whoever asks can ask again, and the hot path has to go on.
const WAITING: usize = 64;
/// An answer takes no longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be done with a resource of the group `explain.atoll.dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read all.
    List,
    /// Ask with a body.
    Create,
}

/// A question, as a path of the group `explain.atoll.dev` puts it. Whoever passes it on has checked that the user may ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What is to be done.
    pub verb: Verb,
    /// The resource, in the plural.
    pub resource: String,
    /// The namespace, for resources in namespaces.
    pub namespace: Option<String>,
    /// The object's name; none for `List` and `Create`.
    pub name: Option<String>,
    /// The parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// The body, for `Create`.
    pub body: Option<Value>,
}

impl Asked {
    /// A parameter of the query; the first, if it is given more than once.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// An answer: an object, or a `Status` that says why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// The object.
    pub body: Value,
}

impl Answered {
    /// An object.
    pub fn found(body: Value) -> Self {
        Self { status: 200, body }
    }

    /// No object, and why.
    pub fn refused(status: u16, reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": status,
        });
        Self { status, body }
    }
}

/// A question on its way to the leader's task.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    pub(crate) answer: oneshot::Sender<Answered>,
}

/// Where questions are asked, in this process. Cloned for every server; the leader hears them while it leads.
#[derive(Debug, Clone)]
pub struct Questions {
    leader: Arc<watch::Sender<Option<mpsc::Sender<Question>>>>,
}

impl Default for Questions {
    fn default() -> Self {
        Self { leader: Arc::new(watch::Sender::new(None)) }
    }
}

impl Questions {
    /// Asks the leader, if it is in this process.
    pub async fn ask(&self, asked: Asked) -> Answered {
        let leader = self.leader.borrow().clone();
        let Some(leader) = leader else {
            return Answered::refused(
                503,
                "ServiceUnavailable",
                "this hub is not the leader, or is still starting; ask again in a few seconds",
            );
        };
        let (answer, answered) = oneshot::channel();
        if leader.try_send(Question { asked, answer }).is_err() {
            let message = format!("more than {WAITING} questions are waiting; ask again in a few seconds");
            return Answered::refused(429, "TooManyRequests", message);
        }
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) | Err(_) => Answered::refused(
                503,
                "ServiceUnavailable",
                "the leader did not answer; it may have stopped leading: ask again in a few seconds",
            ),
        }
    }

    /// From now on the leader is here, and hears what is asked.
    pub(crate) fn hear(&self) -> mpsc::Receiver<Question> {
        let (asked, questions) = mpsc::channel(WAITING);
        self.leader.send_replace(Some(asked));
        questions
    }

    /// The leader is no longer here.
    pub(crate) fn end(&self) {
        self.leader.send_replace(None);
    }
}

/// Whether a path is one of ours, for the words of an error.
pub(crate) fn unknown(resource: &str) -> Answered {
    let message = format!("{} {} has no resource `{resource}`", explain::GROUP, explain::VERSION);
    Answered::refused(404, "NotFound", message)
}
