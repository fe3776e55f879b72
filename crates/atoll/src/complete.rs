//! Completion of names that only a hub knows: members, services, namespaces. In bounded time, and silent on errors.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use clap_complete::env::Shells;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::commands::ask::Asked;
use crate::context::WhichHub;
use crate::plugin::{self, Called};

/// Set by the script of the shell: which shell asks.
pub(crate) const VARIABLE: &str = "COMPLETE";
/// How long a person waits for a key.
const WITHIN: Duration = Duration::from_millis(1500);
/// What ends cobra's list: no file names.
const NO_FILES: &str = ":4";

/// Answers a shell, or kubectl, if one asks; the process ends with that.
pub(crate) fn if_asked() -> bool {
    if plugin::called() == Called::Completer {
        let _ = std::io::stdout().write_all(for_kubectl(std::env::args_os().skip(1)).as_bytes());
        return true;
    }
    let environment = clap_complete::CompleteEnv::with_factory(crate::cli::command).var(VARIABLE);
    environment.try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// What kubectl expects of `kubectl_complete-atoll`: a line per candidate, then what to do besides.
fn for_kubectl(words: impl Iterator<Item = OsString>) -> String {
    let words: Vec<OsString> = std::iter::once("atoll".into()).chain(words).collect();
    let last = words.len() - 1;
    let mut command = crate::cli::command();
    let found = clap_complete::engine::complete(&mut command, words, last, None).unwrap_or_default();
    let mut text = String::new();
    for candidate in found.iter().filter(|one| !one.is_hide_set()) {
        let Some(value) = candidate.get_value().to_str() else { continue };
        text.push_str(value);
        if let Some(help) = candidate.get_help() {
            text.push('\t');
            text.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    text + NO_FILES + "\n"
}

/// The script that makes a shell ask this program.
pub(crate) fn script(shell: &str) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else { anyhow::bail!("unknown shell {shell}") };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "atoll", "atoll", &plugin::this_program(), &mut script)?;
    Ok(String::from_utf8(script)?)
}

/// The members.
pub(crate) fn clusters() -> Vec<CompletionCandidate> {
    asked(async |which, _| {
        let client = which.find_quietly().await.ok()?.client().ok()?;
        let list =
            Api::<atoll_api::types::Cluster>::all(client).list_metadata(&ListParams::default()).await.ok()?;
        Some(list.items.iter().map(ResourceExt::name_any).collect())
    })
}

/// Namespaces of the hub.
pub(crate) fn namespaces() -> Vec<CompletionCandidate> {
    asked(async |which, _| {
        let client = which.find_quietly().await.ok()?.client().ok()?;
        let list = Api::<k8s_openapi::api::core::v1::Namespace>::all(client);
        let list = list.list_metadata(&ListParams::default()).await.ok()?;
        Some(list.items.iter().map(ResourceExt::name_any).collect())
    })
}

/// Services that the hub knows: by their names in the namespace that is given, else with their namespaces.
pub(crate) fn services() -> Vec<CompletionCandidate> {
    asked(async |which, namespace| {
        let asked = Asked::quietly(&which).await.ok()?;
        let services = asked.services(namespace.as_deref()).await.ok()?;
        let bare = |name: &String| name.rsplit('/').next().unwrap_or_default().to_owned();
        Some(if namespace.is_some() { services.iter().map(bare).collect() } else { services })
    })
}

/// Asks in a thread of its own, and takes what has come in time.
fn asked(
    question: impl AsyncFnOnce(WhichHub, Option<String>) -> Option<Vec<String>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (answer, answered) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (which, namespace) = flags(std::env::args_os().filter_map(|word| word.into_string().ok()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        answer.send(runtime.block_on(question(which, namespace))?).ok()
    });
    let names = answered.recv_timeout(WITHIN).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The flags that have been typed so far.
fn flags(words: impl Iterator<Item = String>) -> (WhichHub, Option<String>) {
    let (mut which, mut namespace) = (WhichHub::default(), None);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || value.clone().or_else(|| words.peek().cloned()).filter(|text| !text.is_empty());
        match flag.as_str() {
            "--kubeconfig" => which.kubeconfig = value().map(Into::into),
            "--context" => which.context = value(),
            "--data-dir" => which.data_dir = value().map(Into::into),
            "-n" | "--namespace" => namespace = value(),
            _ => {}
        }
    }
    (which, namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_that_are_typed_say_which_hub_is_asked() {
        let read = |line: &str| flags(line.split(' ').map(str::to_owned));
        let (which, namespace) = read("atoll explain --context=hub -n shop --kubeconfig /k ");
        assert_eq!((which.context.as_deref(), namespace.as_deref()), (Some("hub"), Some("shop")));
        assert_eq!(which.kubeconfig, Some("/k".into()));
        let (which, namespace) = read("atoll explain web --data-dir /d -n ");
        assert_eq!((which.data_dir, namespace), (Some("/d".into()), None));
    }
}
