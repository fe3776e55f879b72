//! What only a running pod can answer: logs, and sessions with its programs.

use super::RequestContext;
use crate::access::rbac::{Attributes, Target};
use crate::http::answer::Answer;
use crate::http::encode;
use crate::http::status_error::{StatusError, Subject};
use crate::pods::{
    Handshake, PodAttachOptions, PodError, PodExecOptions, PodLogOptions, PodRef, Pods, Purpose,
    SessionOptions, carry, choose_container,
};
use crate::resources::resource::Subresource;
use crate::storage::store::Key;
use atoll_apimachinery::invalid::FieldError;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

const LOG_OPTIONS: Subject<'static> = Subject { group: "", name: "PodLogOptions" };

impl RequestContext<'_> {
    /// The log of a container.
    pub(crate) fn log(&self) -> Result<Answer, StatusError> {
        let context = self.log_ask()?;
        let (pod, node) = self.pod()?;
        if node.is_empty() {
            // A pod that is nowhere yet has written nothing.
            return Ok(Answer::nothing());
        }
        let pieces = self.runner(&node, "cannot get the log")?.logs(&pod, context).map_err(refused)?;
        let pieces = futures_util::stream::unfold(pieces, |mut pieces| async move {
            pieces.recv().await.map(|piece| (piece, pieces))
        });
        Ok(Answer::text_stream(pieces))
    }

    /// A command in a container, or a way to the program that it runs.
    pub(crate) fn session(&self) -> Result<Answer, StatusError> {
        self.may_create()?;
        let flag = |key| self.info.query.flag(key).unwrap_or(false);
        let [stdin, stdout, stderr, tty] = ["stdin", "stdout", "stderr", "tty"].map(flag);
        let (pod, node) = self.pod()?;
        self.admit("CONNECT", &pod.name, Some(&self.session_options(&pod)), None, false)?;
        if node.is_empty() {
            return Err(StatusError::bad_request(format!("pod {} does not have a host assigned", pod.name)));
        }
        let runner = Arc::clone(self.runner(&node, "error dialing backend")?);
        let handshake = Handshake::read(&self.parts.headers)?;
        if !(stdin || stdout || stderr) {
            return Err(StatusError::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        let Some(upgrade) = self.parts.extensions.get::<OnUpgrade>().cloned() else {
            return Err(StatusError::bad_request(
                "unable to upgrade: there is no connection below this client, which is in the server's own process; \
                 call `atoll_kubeapi::pods::Pods` itself",
            ));
        };
        let (purpose, session) = match &self.subresource {
            Some(Subresource::Attach) => {
                (Purpose::Attach, runner.attach(&pod, PodAttachOptions { stdin, stdout, stderr, tty }))
            }
            _ => {
                let command: Vec<String> = self.info.query.all("command").map(str::to_owned).collect();
                if command.is_empty() {
                    return Err(StatusError::bad_request(
                        "you must specify at least one command for the container",
                    ));
                }
                (Purpose::Exec, runner.exec(&pod, PodExecOptions { command, stdin, stdout, stderr, tty }))
            }
        };
        let terms = SessionOptions { protocol: handshake.protocol, purpose, stdout, stderr };
        let session = session.map_err(|error| error.to_string());
        let carry = async move {
            match upgrade.await {
                Ok(connection) => carry(TokioIo::new(connection), terms, session).await,
                Err(error) => tracing::debug!(%error, "a connection ended before its session began"),
            }
        };
        Ok(Answer::upgrade(handshake.protocol.name(), &handshake.accept, carry))
    }

    /// What a policy sees of a session: `PodExecOptions` or `PodAttachOptions`.
    fn session_options(&self, pod: &PodRef) -> Value {
        let kind =
            if self.subresource == Some(Subresource::Attach) { "PodAttachOptions" } else { "PodExecOptions" };
        let mut options = json!({"apiVersion": "v1", "kind": kind, "container": pod.container});
        for flag in ["stdin", "stdout", "stderr", "tty"] {
            if self.info.query.flag(flag) == Some(true) {
                options[flag] = true.into();
            }
        }
        let command: Vec<&str> = self.info.query.all("command").collect();
        if !command.is_empty() {
            options["command"] = json!(command);
        }
        options
    }

    /// A session begins with GET, but a user that may only read must not run commands: `create` is checked in any case.
    fn may_create(&self) -> Result<(), StatusError> {
        let target = Target::Resource {
            group: &self.target.group,
            resource: &self.target.resource,
            subresource: &self.target.subresource,
            namespace: &self.target.namespace,
            name: &self.target.name,
        };
        self.state.authorize(&Attributes { user: self.user, verb: "create", target })
    }

    /// The container that is meant, and the node that its pod is on.
    fn pod(&self) -> Result<(PodRef, String), StatusError> {
        let pod: Value = encode::read(&self.stored(&self.target.name)?.body);
        let asked = self.info.query.first("container").unwrap_or_default();
        let container = choose_container(&pod, asked).map_err(StatusError::bad_request)?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (self.target.namespace.clone(), self.target.name.clone());
        Ok((PodRef { namespace, name, container }, node))
    }

    /// Who runs pods; otherwise what a server says that can't reach a node.
    fn runner(&self, node: &str, doing: &str) -> Result<&Arc<dyn Pods>, StatusError> {
        self.state.pods.as_ref().ok_or_else(|| {
            if self.state.store.get(&Key::new("", "nodes", "", node)).is_none() {
                return StatusError::not_found(Subject { group: "", name: "nodes" }, node);
            }
            StatusError::plain(format!(
                "{doing}: nothing runs pods behind this API, so there is no kubelet on node {node:?} to ask"
            ))
        })
    }

    fn log_ask(&self) -> Result<PodLogOptions, StatusError> {
        let query = &self.info.query;
        let flag = |key| query.flag(key).unwrap_or(false);
        let number = |key| -> Result<Option<i64>, StatusError> {
            let parse = |text: &str| {
                text.parse().map_err(|_| {
                    StatusError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
                })
            };
            query.first(key).map(parse).transpose()
        };
        let (tail, limit, since) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
        let since_time = match query.first("sinceTime") {
            None | Some("") => None,
            Some(text) => Some(
                text.parse::<Timestamp>()
                    .map_err(|error| StatusError::bad_request(format!("parsing time {text:?}: {error}")))?,
            ),
        };
        let mut errors = Vec::new();
        if let Some(lines) = tail.filter(|lines| *lines < 0) {
            errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
        }
        if let Some(bytes) = limit.filter(|bytes| *bytes < 1) {
            errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
        }
        if since.is_some() && since_time.is_some() {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("", why));
        } else if let Some(seconds) = since.filter(|seconds| *seconds < 1) {
            errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
        }
        if query.first("stream").is_some() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(StatusError::invalid(LOG_OPTIONS, &self.target.name, &errors));
        }
        let ago =
            since_time.map(|time| self.state.environment.now().as_second().saturating_sub(time.as_second()));
        Ok(PodLogOptions {
            follow: flag("follow"),
            previous: flag("previous"),
            tail_lines: tail.and_then(|lines| usize::try_from(lines).ok()),
            since_seconds: since.or(ago).map(|seconds| u64::try_from(seconds).unwrap_or(0)),
            timestamps: flag("timestamps"),
            limit_bytes: limit.and_then(|bytes| usize::try_from(bytes).ok()),
        })
    }
}

fn refused(error: PodError) -> StatusError {
    match error {
        PodError::NotFound(why) => StatusError::nothing_there(why),
        PodError::NotRunning(why) | PodError::BadRequest(why) => StatusError::bad_request(why),
        PodError::Internal(why) => StatusError::internal(&why),
    }
}
