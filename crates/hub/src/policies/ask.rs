//! Asks the hub's API about the authors of policies: its own authorisation and admission decide, and nothing here.
//!
//! A right is asked by `SubjectAccessReview`. An object is created as its author, as a dry run: roles, quotas and admission policies
//! answer as they would answer them. That the object is there already is the last thing an API server finds out.
//!
//! Members that were joined so are asked too ([`there`]), each in its own turn: one that does not answer holds up no other.

mod there;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;
use atoll_engine::placement::access::{Author, Question, Refused, Stamp, Verdict};
use atoll_engine::placement::object::{Kind, ObjectKey};
use http::{HeaderName, HeaderValue};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams, Request};
use kube::{Api, Client, Resource, discovery};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::core::{Event, HINT};
use super::turns::{Next, Turns};
use super::{Rules, edge};
use crate::membership::connect::{code, why};

/// Asked at once, for all authors; `turns` bounds each of them.
const AT_ONCE: usize = 8;
/// What is not answered is asked again after these.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10)];
/// What the author of a policy needs for every kind that it brings somewhere: whoever can't read an object gets no copy of it made.
const VERBS: [&str; 3] = ["get", "create", "update"];

/// Whether authors of `MultiClusterServices` may have Services: asked before anything is dispatched in their name.
pub(crate) struct Authors {
    client: Client,
    rules: Rules,
    known: BTreeMap<(Author, String), (Standing, Instant)>,
}

/// Whether what a user wrote counts; if not, why.
pub(crate) type Standing = Result<(), String>;

impl Authors {
    pub(crate) fn new(client: Client, rules: Rules) -> Self {
        Self { client, rules, known: BTreeMap::new() }
    }

    /// After this, what is known of authors has to be asked again.
    pub(crate) fn ask_again(&self) -> Duration {
        self.rules.ask_again
    }

    /// All authors are asked about again.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Whether this one may have Services in this namespace.
    pub(crate) async fn may_serve(&mut self, stamp: Option<&str>, namespace: &str) -> Standing {
        let author = match edge::stamp(stamp, self.rules.stamps) {
            Stamp::By(author) if !author.is_master() => author,
            Stamp::By(_) | Stamp::Unchecked => return Ok(()),
            Stamp::Missing => return Err(format!("{}. {HINT}", Refused::NoAuthor)),
        };
        let fresh = self.rules.ask_again;
        self.known.retain(|_, (_, at)| at.elapsed() < fresh);
        let key = (Author::clone(&author), namespace.to_owned());
        if let Some((standing, _)) = self.known.get(&key) {
            return standing.clone();
        }
        let name = author.username.clone();
        let question = Question::Right(author, Kind::new("v1", "Service"), namespace.to_owned());
        let standing = match until_answered(&self.client, &Semaphore::new(1), &question).await {
            Verdict::Allowed => Ok(()),
            Verdict::Denied(why) => Err(Refused::NotAllowed { author: name, why }.to_string()),
        };
        self.known.insert(key, (standing.clone(), Instant::now()));
        standing
    }
}

/// Answers questions until all askers are gone.
pub(super) async fn ask_all(
    client: Client,
    mut wanted: UnboundedReceiver<Question>,
    events: UnboundedSender<Event>,
) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut members: BTreeMap<ClusterId, Arc<Semaphore>> = BTreeMap::new();
    let mut under_way = BTreeSet::new();
    let mut asking: JoinSet<Question> = JoinSet::new();
    let (mut lines, beginning) = (Turns::default(), Instant::now());
    loop {
        let later = loop {
            let question = match lines.next(beginning.elapsed()) {
                Next::Ask(question) => question,
                Next::Later(at) => break Some(beginning + at),
                Next::Nothing => break None,
            };
            let own = match &question {
                Question::There(_, id, ..) => {
                    members.entry(id.clone()).or_insert_with(|| Arc::new(Semaphore::new(there::AT_ONCE)))
                }
                Question::Right(..) | Question::Content(..) => &turns,
            };
            let (client, turns, events) = (client.clone(), Arc::clone(own), events.clone());
            asking.spawn(async move {
                let verdict = until_answered(&client, &turns, &question).await;
                let _ = events.send(Event::Verdict(question.clone(), verdict));
                question
            });
        };
        let time = async {
            match later {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            question = wanted.recv() => {
                let Some(question) = question else { return };
                if under_way.insert(question.clone())
                    && let Err(question) = lines.come(question)
                {
                    under_way.remove(&question);
                    let why = "too many checks wait for this author; it is checked again in a minute";
                    let _ = events.send(Event::Verdict(question, Verdict::Denied(why.to_owned())));
                }
            }
            Some(done) = asking.join_next(), if !asking.is_empty() => {
                if let Ok(question) = done {
                    lines.answered(question.author());
                    under_way.remove(&question);
                }
            }
            () = time => {}
        }
    }
}

/// What can't be answered is denied, and asked again with everything that is.
async fn until_answered(client: &Client, turns: &Semaphore, question: &Question) -> Verdict {
    let mut last = String::new();
    for pause in PAUSES.iter().map(Some).chain([None]) {
        let answer = {
            let _turn = turns.acquire().await;
            match question {
                Question::Right(author, kind, namespace) => right(client, author, kind, namespace).await,
                Question::Content(author, key, object) => content(client, author, key, object).await,
                Question::There(author, id, kind, namespace) => {
                    there::may(client, author, id, kind, namespace).await
                }
            }
        };
        match answer {
            Ok(verdict) => return verdict,
            Err(error) => last = why(&error),
        }
        if let Some(pause) = pause {
            tracing::debug!(
                author = question.author().username,
                why = last,
                "cannot check an author's rights yet"
            );
            tokio::time::sleep(*pause).await;
        }
    }
    let whom = match question {
        Question::Right(..) | Question::Content(..) => "the hub's API".to_owned(),
        Question::There(_, id, ..) => format!("the API of {id}"),
    };
    Verdict::Denied(format!("{whom} does not say whether they may: {last}"))
}

async fn right(
    client: &Client,
    author: &Author,
    kind: &Kind,
    namespace: &str,
) -> Result<Verdict, kube::Error> {
    let resource = resource(client, kind).await?;
    for verb in VERBS {
        if !allowed(client, author, verb, &resource.group, &resource.plural, namespace).await? {
            return Ok(Verdict::Denied(lacks(verb, &resource.plural, namespace, "the hub")));
        }
    }
    Ok(Verdict::Allowed)
}

/// Whether an API server lets a user do this.
async fn allowed(
    client: &Client,
    author: &Author,
    verb: &str,
    group: &str,
    plural: &str,
    namespace: &str,
) -> Result<bool, kube::Error> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(plural.to_owned()),
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(author.username.clone()),
        uid: Some(author.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(author.groups.clone()),
        extra: Some(author.extra.clone()).filter(|extra| !extra.is_empty()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let status = api.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    Ok(status.allowed)
}

fn lacks(verb: &str, plural: &str, namespace: &str, of: &str) -> String {
    if namespace.is_empty() {
        format!("they may not {verb} {plural} in the whole cluster of {of}")
    } else {
        format!("they may not {verb} {plural} in the namespace {namespace} of {of}")
    }
}

async fn content(
    client: &Client,
    author: &Author,
    key: &ObjectKey,
    object: &str,
) -> Result<Verdict, kube::Error> {
    let resource = resource(client, &key.kind).await?;
    let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let path = DynamicObject::url_path(&resource, namespace);
    let object = without_ports(serde_json::from_str(object).map_err(kube::Error::SerdeError)?);
    let body = serde_json::to_vec(&object).map_err(kube::Error::SerdeError)?;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let mut request = Request::new(path).create(&params, body).map_err(kube::Error::BuildRequest)?;
    // What else was said of the author (`extra`) is part of the review above, and of no role.
    let users = [("impersonate-user", &author.username)];
    let groups = author.groups.iter().map(|group| ("impersonate-group", group));
    for (name, value) in users.into_iter().chain(groups) {
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
            return Ok(Verdict::Denied("their name can't be written in a header".to_owned()));
        };
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    match client.request::<Value>(request).await {
        Ok(_) => Ok(Verdict::Allowed),
        Err(error) => match code(&error) {
            Some(409) => Ok(Verdict::Allowed), // it is there, and nothing else stood in the way
            Some(400 | 403 | 404 | 422) => Ok(Verdict::Denied(why(&error))),
            Some(_) | None => Err(error),
        },
    }
}

/// A Service without node ports: the template itself has them in the hub.
fn without_ports(mut object: Value) -> Value {
    if object["apiVersion"] == "v1" && object["kind"] == "Service" {
        let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        ports.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|port| {
            port.remove("nodePort");
        });
    }
    object
}

async fn resource(client: &Client, kind: &Kind) -> Result<ApiResource, kube::Error> {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    Ok(discovery::oneshot::pinned_kind(client, &gvk).await?.0)
}
