//! Events, as `kubectl describe` shows them: the one writer for members and for the hub's own API.
//!
//! ```text
//!   tell(Notice) ──▶ a bounded queue ──▶ Budget: said before? too many? ──▶ a line in the log, one request at a time
//!        └─ full: dropped                     └─ dropped
//! ```
//!
//! Events are for people, and lossy by nature: nothing waits for one, and what can't be written soon is dropped. Who tells does so
//! once per change; conditions say what is so now.

mod budget;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;

use self::budget::Budget;
use crate::Permit;
use crate::core::event::Failure;
use crate::shell::failure;

/// A real API server takes no longer messages.
const LONGEST: usize = 1000;
/// How many may wait to be written.
const WAITING: usize = 128;
/// How long one may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// When one is tried again, once.
const PAUSE: Duration = Duration::from_secs(1);
/// For how long an API that does not let us write events is not asked again.
const FORBIDDEN_FOR: Duration = Duration::from_secs(300);
const COMPONENT: &str = "atoll-hub";

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct About {
    /// Its group and version.
    pub api_version: Cow<'static, str>,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// Empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which object of this name. If it is not known, the object is read first, and nothing is told of one that is not there.
    pub uid: Option<String>,
}

/// Something to be told about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The object.
    pub about: About,
    /// `Warning` or `Normal`.
    pub warning: bool,
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Where notices go. Clones share it; the writer ends with the last of them.
#[derive(Debug, Clone)]
pub struct Events(mpsc::Sender<Notice>);

impl Events {
    /// Starts to write events into an API, while the permit holds. `place` is how logs call that API, and `hint` what helps when it
    /// does not let us.
    pub fn start(client: Client, permit: Permit, place: String, hint: &'static str) -> Self {
        let (send, told) = mpsc::channel(WAITING);
        tokio::spawn(write_all(client, permit, (place, hint), told));
        Self(send)
    }

    /// Tells it, unless too much is waiting.
    pub fn tell(&self, notice: Notice) {
        if let Err(dropped) = self.0.try_send(notice) {
            let (mpsc::error::TrySendError::Full(notice) | mpsc::error::TrySendError::Closed(notice)) =
                dropped;
            tracing::debug!(object = %notice.about.name, reason = notice.reason, "an event was dropped: too many are waiting");
        }
    }
}

async fn write_all(
    client: Client,
    permit: Permit,
    (place, hint): (String, &str),
    mut told: mpsc::Receiver<Notice>,
) {
    let mut budget = Budget::new(Instant::now());
    let mut closed_until: Option<Instant> = None;
    let mut said_closed = false;
    while let Some(notice) = told.recv().await {
        let now = Instant::now();
        if !permit.holds() {
            continue;
        }
        if !budget.lets(&notice, now) {
            tracing::debug!(place, object = %notice.about.name, reason = notice.reason, "an event was dropped: it was told before, or there are too many");
            continue;
        }
        log(&place, &notice);
        if closed_until.is_some_and(|until| now < until) {
            continue;
        }
        match until_done(&client, &notice).await {
            Ok(()) => (closed_until, said_closed) = (None, false),
            Err(Failure::Forbidden(why)) => {
                closed_until = Some(now + FORBIDDEN_FOR);
                if !std::mem::replace(&mut said_closed, true) {
                    tracing::warn!(
                        place,
                        why,
                        "cannot create events here, so objects have conditions only; {hint}"
                    );
                }
            }
            Err(failure) => {
                let why = failure.to_string();
                tracing::debug!(place, object = %notice.about.name, reason = notice.reason, why, "an event could not be written");
            }
        }
    }
}

/// One line in the log: the budget bounds what a member can make of it.
fn log(place: &str, Notice { about, warning, reason, message }: &Notice) {
    let About { kind, namespace, name, .. } = about;
    if *warning {
        tracing::warn!(cluster = place, %kind, namespace, name, reason, "{message}");
    } else {
        tracing::debug!(cluster = place, %kind, namespace, name, reason, "{message}");
    }
}

/// Writes it, and tries once more if that may help.
async fn until_done(client: &Client, notice: &Notice) -> Result<(), Failure> {
    match in_time(client, notice).await {
        Err(Failure::Unreachable(_) | Failure::Later(_)) => {
            tokio::time::sleep(PAUSE).await;
            in_time(client, notice).await
        }
        other => other,
    }
}

async fn in_time(client: &Client, notice: &Notice) -> Result<(), Failure> {
    match tokio::time::timeout(DEADLINE, write(client, notice)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Unreachable("no answer within 5 s".to_owned())),
    }
}

async fn write(client: &Client, notice: &Notice) -> Result<(), Failure> {
    let uid = match &notice.about.uid {
        Some(uid) => uid.clone(),
        None => match uid(client, &notice.about).await? {
            Some(uid) => uid,
            None => return Ok(()), // it is gone, and an event on it would not be seen
        },
    };
    let event = event(notice, &uid, Timestamp::now()).map_err(|error| Failure::Invalid(error.to_string()))?;
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let api = Api::<Event>::namespaced(client.clone(), &namespace);
    match api.create(&PostParams::default(), &event).await {
        Ok(_) => Ok(()),
        Err(error) => Err(failure::of(&error)),
    }
}

/// The uid of an object that is known by name.
async fn uid(client: &Client, about: &About) -> Result<Option<String>, Failure> {
    let (group, version) = about.api_version.split_once('/').unwrap_or(("", &about.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &about.kind));
    let api: Api<DynamicObject> = match about.namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let found = api.get_opt(&about.name).await.map_err(|error| failure::of(&error))?;
    Ok(found.and_then(|object| object.uid()))
}

/// The event of this moment.
fn event(notice: &Notice, uid: &str, now: Timestamp) -> Result<Event, serde_json::Error> {
    let Notice { about, warning, reason, message } = notice;
    let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
    let seconds = format!("{now:.0}");
    serde_json::from_value(json!({
        "metadata": { "namespace": namespace, "name": format!("{}.{:x}", about.name.replace(':', "."), now.as_nanosecond()) },
        "involvedObject": {
            "apiVersion": about.api_version, "kind": about.kind,
            "namespace": about.namespace, "name": about.name, "uid": uid,
        },
        "type": if *warning { "Warning" } else { "Normal" },
        "reason": reason,
        "message": message.chars().take(LONGEST).collect::<String>(),
        "source": { "component": COMPONENT },
        "reportingComponent": COMPONENT,
        "firstTimestamp": seconds, "lastTimestamp": seconds, "count": 1,
    }))
}
