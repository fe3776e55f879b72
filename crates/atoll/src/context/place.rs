//! Where a hub is, for people; and what an error of its API means there.

use std::path::{Path, PathBuf};

use atoll_api::names::kind::{about, cluster};
use atoll_api::names::property::CLUSTER_ID;
use atoll_hub::connect;
use kube::config::{ExecConfig, Kubeconfig};
use serde_json::Value;

use super::rule::{Choice, Step};
use crate::commands::up::HUB;
use crate::failure::Failure;
use crate::objects::rest::{Form, Rest};

/// Where a hub is, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The URL of its API, once it is known.
    pub(crate) url: Option<String>,
    /// Its kubeconfig, where it is one file.
    pub(crate) file: Option<PathBuf>,
    /// The context there.
    pub(crate) context: Option<String>,
    /// The program that gets its credentials.
    plugin: Option<String>,
    step: Step,
    passed_over: Vec<PathBuf>,
}

impl Place {
    /// What a choice leads to, as its kubeconfig says.
    pub(crate) fn of(choice: &Choice, config: Option<&Kubeconfig>) -> Self {
        let context = choice.context.clone().or_else(|| config?.current_context.clone());
        let context = context.filter(|name| !name.is_empty());
        let exec = config.zip(context.as_deref()).and_then(|(config, context)| exec(config, context));
        Self {
            url: None,
            file: choice.file.clone(),
            plugin: exec.and_then(|exec| exec.command.clone()),
            context,
            step: choice.step,
            passed_over: choice.passed_over.clone(),
        }
    }

    /// In one line: `https://10.0.0.1:6443 (context hub of /etc/hub.yaml, from $KUBECONFIG)`.
    pub(crate) fn shown(&self) -> String {
        let file = self.file.as_deref().map(|file| file.display().to_string());
        let from = match (&self.context, file) {
            (Some(context), Some(file)) => format!("context {context} of {file}, {}", self.step.shown()),
            (Some(context), None) => format!("context {context}, {}", self.step.shown()),
            (None, Some(file)) => format!("{file}, {}", self.step.shown()),
            (None, None) => self.step.shown().to_owned(),
        };
        match &self.url {
            Some(url) => format!("{} ({from})", url.trim_end_matches('/')),
            None => from,
        }
    }

    /// Says on stderr which hub is used, if this host knows others that could have been meant.
    pub(crate) fn tell_in_doubt(&self) {
        if !self.passed_over.is_empty() {
            eprintln!("{}", self.doubt());
        }
    }

    fn doubt(&self) -> String {
        let others: Vec<String> = self.passed_over.iter().map(|file| file.display().to_string()).collect();
        format!("hub: {}; not that of {}", self.shown(), others.join(" or "))
    }

    /// A kubeconfig that can't be used.
    pub(crate) fn unusable(&self, error: &connect::ConnectError) -> Failure {
        let failure = Failure::connect(error);
        let failure = match (self.step, &self.plugin) {
            (_, Some(plugin)) if matches!(error, connect::ConnectError::Client { .. }) => failure.with_hint(
                &format!("credentials come from the program `{plugin}`: run it by hand, and log in again if it says so"),
            ),
            (Step::DataDir | Step::DataDirVariable, _) => failure.with_hint(
                "start the hub (`atoll hub --data-dir DIR`), or use the directory that it was started with",
            ),
            (Step::UpDirVariable | Step::Sandbox, _) => failure.with_hint("start the sandbox with `atoll up`"),
            (Step::Kubectl, _) => failure.not_of_usage().with_hint(
                "no hub was found on this host: name its kubeconfig with --kubeconfig or $KUBECONFIG, or start a sandbox with `atoll up`",
            ),
            (Step::Flag | Step::Kubeconfig | Step::OwnHub, _) => failure,
        };
        failure.at(&self.shown())
    }

    /// A request to the hub that failed.
    pub(crate) fn failure(&self, what: &str, error: &kube::Error) -> Failure {
        let failure = Failure::request(what, error);
        let failure = match (connect_code(error), &self.plugin) {
            (Some(401), Some(plugin)) => failure.with_hint(&format!(
                "the hub does not accept what the program `{plugin}` gave: log in again, and check the context"
            )),
            (Some(401), None) => failure
                .with_hint("the hub does not accept these credentials: get a new kubeconfig from its administrator"),
            (Some(_), _) => failure,
            (None, _) if matches!(error, kube::Error::Auth(_)) => {
                let plugin = self.plugin.as_deref().unwrap_or("of the kubeconfig");
                failure.with_hint(&format!(
                    "credentials come from the program `{plugin}`: run it by hand, and log in again if it says so"
                ))
            }
            (None, _) => failure.with_hint(match self.step {
                Step::Sandbox | Step::UpDirVariable => "the sandbox does not run: start it with `atoll up`",
                Step::OwnHub | Step::DataDir | Step::DataDirVariable => {
                    "the hub of this data directory does not run: start it with `atoll hub`"
                }
                Step::Flag | Step::Kubeconfig | Step::Kubectl => {
                    "check that the hub runs and that this host reaches it; to ask another hub, use --kubeconfig and --context"
                }
            }),
        };
        failure.at(&self.shown())
    }

    /// The API serves no members: it is none of a hub, or no hub has run on it yet.
    pub(crate) async fn no_hub(&self, rest: &Rest) -> Failure {
        let property = format!(
            "/apis/{}/{}/{}/{}",
            about::GROUP,
            about::V1BETA1,
            about::CLUSTER_PROPERTIES,
            CLUSTER_ID,
        );
        let id = rest.get(&property, Form::Objects).await.ok();
        let id = id.and_then(|found| Some(found.pointer("/spec/value").and_then(Value::as_str)?.to_owned()));
        let what = "this API is not that of a hub";
        let why = match &id {
            Some(id) => format!("it is that of a cluster that is a member of a clusterset, as `{id}`"),
            None => format!(
                "it does not serve {}.{}; a hub installs them when it starts",
                cluster::CLUSTERS,
                cluster::GROUP
            ),
        };
        Failure::ended(what, &why)
            .with_hint("name the hub with --kubeconfig and --context, or with $KUBECONFIG; `atoll up` starts a sandbox with one")
            .at(&self.shown())
    }
}

/// The kubeconfig of one of the sandbox's members is no hub's; said before it is asked.
pub(crate) fn member_of_sandbox(
    file: &Path,
    context: Option<&str>,
    contexts: &[&str],
    is_sandbox: impl Fn(&Path) -> bool,
) -> Option<String> {
    let dir = file.parent()?;
    if is_sandbox(dir) {
        // A context that is not there is told as such, when the kubeconfig is used.
        let is_member = |name: &&str| *name != HUB && contexts.contains(name) && contexts.contains(&HUB);
        return context.filter(is_member).map(str::to_owned);
    }
    let above = dir.parent().filter(|above| above.ends_with("members"))?;
    above.parent().filter(|dir| is_sandbox(dir))?;
    Some(dir.file_name()?.to_str()?.to_owned())
}

fn exec<'a>(config: &'a Kubeconfig, context: &str) -> Option<&'a ExecConfig> {
    let context = config.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    let user = config.auth_infos.iter().find(|one| Some(&one.name) == context.user.as_ref())?;
    user.auth_info.as_ref()?.exec.as_ref()
}

fn connect_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_named_by_its_url_context_and_file_and_by_who_named_it() {
        let place = |file: Option<&str>, context: Option<&str>, step| Place {
            url: Some("https://10.0.0.1:6443/".to_owned()),
            file: file.map(Into::into),
            context: context.map(str::to_owned),
            plugin: None,
            step,
            passed_over: vec!["/h/.atoll/kubeconfig".into()],
        };
        for (file, context, step, want) in [
            (
                Some("/k"),
                Some("hub"),
                Step::Kubeconfig,
                "https://10.0.0.1:6443 (context hub of /k, from $KUBECONFIG)",
            ),
            (Some("/k"), None, Step::OwnHub, "https://10.0.0.1:6443 (/k, the hub of this host)"),
            (None, Some("hub"), Step::Flag, "https://10.0.0.1:6443 (context hub, as the flags say)"),
            (None, None, Step::Kubectl, "https://10.0.0.1:6443 (as kubectl takes it)"),
        ] {
            assert_eq!(place(file, context, step).shown(), want);
        }
        let doubt = place(Some("/k"), Some("hub"), Step::Kubeconfig).doubt();
        assert!(doubt.ends_with("; not that of /h/.atoll/kubeconfig"), "{doubt}");
    }

    #[test]
    fn a_member_of_a_sandbox_is_told_from_its_hub() {
        let sandbox = |dir: &Path| dir == Path::new("/up");
        let contexts = ["hub", "member1"];
        for (file, context, want) in [
            ("/up/kubeconfig", Some("member1"), Some("member1")),
            ("/up/kubeconfig", Some("hub"), None),
            ("/up/kubeconfig", None, None),
            ("/up/kubeconfig", Some("nope"), None),
            ("/up/members/member2/kubeconfig", Some("atoll"), Some("member2")),
            ("/up/hub/kubeconfig", Some("atoll"), None),
            ("/else/kubeconfig", Some("member1"), None),
        ] {
            let got = member_of_sandbox(Path::new(file), context, &contexts, sandbox);
            assert_eq!(got.as_deref(), want, "{file} {context:?}");
        }
    }
}
