//! An error for a person: what happened, why, what to do.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use atoll_dns_server::ServerError;
use atoll_dns_server::setup::SetupError;
use atoll_hub::HubError;
use atoll_hub::connect::{self, ConnectError};
use atoll_hub::join::JoinError;
use atoll_hub::reach::ReachError;
use atoll_hub::revoke::RevokeError;
use atoll_hub::unjoin::UnjoinError;
use atoll_kubeapi::backup::RestoreError;
use atoll_kubeapi::hosted::HostError;
use atoll_kubeapi::store::OpenError;

use crate::commands::up::HUB;

/// A usage error; clap uses the same code.
const USAGE: u8 = 2;

/// What happened, why, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    why: Option<String>,
    hint: Option<String>,
    usage: bool,
    /// Which hub was asked.
    hub: Option<String>,
}

/// A command in a container ended with this code, which is ours then.
#[derive(Debug)]
struct ExitWith(u8);

impl fmt::Display for ExitWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command terminated with exit code {}", self.0)
    }
}

impl std::error::Error for ExitWith {}

/// All has been said, and this is the exit code.
#[derive(Debug)]
struct Silent(u8);

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended with exit code {}", self.0)
    }
}

impl std::error::Error for Silent {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    pub(crate) fn join(name: &str, error: &JoinError) -> Self {
        Self {
            what: format!("cannot join `{name}`: {error}"),
            why: error.why(),
            hint: error.hint(name),
            usage: matches!(
                error,
                JoinError::BadName { .. }
                    | JoinError::BadClusterset { .. }
                    | JoinError::BadLifetime { .. }
                    | JoinError::Connect(ConnectError::Kubeconfig { .. })
            ),
            hub: None,
        }
    }

    pub(crate) fn unjoin(name: &str, error: &UnjoinError) -> Self {
        Self {
            what: format!("cannot unjoin `{name}`: {error}"),
            why: error.why(),
            hint: error.hint(),
            usage: false,
            hub: None,
        }
    }

    pub(crate) fn revoke(name: &str, error: &RevokeError) -> Self {
        Self {
            what: format!("cannot revoke the tokens for `{name}`: {error}"),
            why: error.why(),
            hint: Some(error.hint()),
            usage: false,
            hub: None,
        }
    }

    /// A usage error.
    pub(crate) fn usage(what: &str, hint: &str) -> Self {
        Self { what: what.to_owned(), why: None, hint: Some(hint.to_owned()), usage: true, hub: None }
    }

    /// What happened, and what to do.
    pub(crate) fn plain(what: &str, hint: &str) -> Self {
        Self { what: what.to_owned(), why: None, hint: Some(hint.to_owned()), usage: false, hub: None }
    }

    /// A directory that can't be used as it is.
    pub(crate) fn directory(what: &str, why: &str) -> Self {
        let hint = Some("use another directory with --dir".to_owned());
        Self { what: what.to_owned(), why: Some(why.to_owned()), hint, usage: false, hub: None }
    }

    /// A directory that another version made.
    pub(crate) fn other_version(what: &str, why: &str) -> Self {
        let hint = "use that version, or another --dir; `atoll up --fresh` deletes the state and starts over"
            .to_owned();
        Self { what: what.to_owned(), why: Some(why.to_owned()), hint: Some(hint), usage: false, hub: None }
    }

    /// An API refused something, or did not answer.
    pub(crate) fn request(what: &str, error: &kube::Error) -> Self {
        let hint = match error {
            kube::Error::Api(_) => None,
            _ => Some(
                "check --kubeconfig and --context, and that the API server is reachable from this host"
                    .to_owned(),
            ),
        };
        Self { what: what.to_owned(), why: Some(connect::why(error)), hint, usage: false, hub: None }
    }

    /// The same, with something to do about it.
    pub(crate) fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// A file with objects that can't be used.
    pub(crate) fn manifest(place: &str, why: &str) -> Self {
        let hint = "objects must be YAML or JSON, with apiVersion, kind and metadata.name".to_owned();
        Self {
            what: format!("cannot read {place}"),
            why: Some(why.trim_end().replace('\n', "\n       ")),
            hint: Some(hint),
            usage: true,
            hub: None,
        }
    }

    /// A word that no resource goes by.
    pub(crate) fn no_such_kind(word: &str) -> Self {
        let hint = "use names as in kubectl, such as pods, svc or deployments.apps; list custom kinds with `atoll get crds`";
        Self::usage(&format!("the cluster has no resource type `{word}`"), hint)
    }

    /// An object of a kind that is not served.
    pub(crate) fn unknown_kind(place: &str, version: &str, kind: &str) -> Self {
        Self {
            what: format!("the cluster does not serve the kind {kind} of {version} ({place})"),
            why: None,
            hint: Some(
                "apply its CustomResourceDefinition first; those of atoll are printed by `atoll crds`"
                    .to_owned(),
            ),
            usage: false,
            hub: None,
        }
    }

    /// An object that should have gone.
    pub(crate) fn still_there(name: &str, after: std::time::Duration) -> Self {
        Self {
            what: format!("{name} still exists after {} s", after.as_secs_f64()),
            why: Some("its deletion waits for a controller, or for a finalizer to be removed".to_owned()),
            hint: Some("check metadata.finalizers; use --wait=false to return without waiting".to_owned()),
            usage: false,
            hub: None,
        }
    }

    pub(crate) fn no_sandbox(kubeconfig: &Path) -> Self {
        Self {
            what: format!("{} does not exist", kubeconfig.display()),
            why: Some("--cluster selects a cluster of `atoll up`, which was not started".to_owned()),
            hint: Some("start it with `atoll up`, or use --context instead".to_owned()),
            usage: true,
            hub: None,
        }
    }

    pub(crate) fn no_such_cluster(name: &str, kubeconfig: &Path, known: &[&str]) -> Self {
        let hint = format!("its clusters are {}", known.join(", "));
        Self::usage(&format!("cluster `{name}` not found in {}", kubeconfig.display()), &hint)
    }

    /// A member that the hub knows, or should, and that can't be reached.
    pub(crate) fn reach(name: &str, error: &ReachError) -> Self {
        Self {
            what: format!("cannot reach `{name}`: {error}"),
            why: error.why(),
            hint: Some(error.hint(name)),
            usage: matches!(error, ReachError::NoSuchMember { .. }),
            hub: None,
        }
    }

    /// The same, said of the hub of a member that is looked for.
    pub(crate) fn for_member(self, name: &str) -> Self {
        let why = [Some(self.what), self.why].into_iter().flatten().collect::<Vec<_>>().join(": ");
        Self {
            what: format!("cannot find the hub of the member `{name}`"),
            why: Some(why),
            usage: true,
            ..self
        }
    }

    /// The hub that was named is a member of the sandbox.
    pub(crate) fn member_as_hub(member: &str) -> Self {
        let hint = format!(
            "add --context {HUB} with the kubeconfig of the sandbox, or run `kubectl config use-context {HUB}`; `-C {member}` means this member"
        );
        Self::usage(&format!("`{member}` is a member of the sandbox, not its hub"), &hint)
    }

    /// The same, with the hub that was asked.
    #[must_use]
    pub(crate) fn at(self, hub: &str) -> Self {
        Self { hub: Some(hub.to_owned()), ..self }
    }

    /// A command in a container that ended with this code: so does this program.
    pub(crate) fn exit(code: u8) -> anyhow::Error {
        ExitWith(code).into()
    }

    /// This exit code, and no words: what was printed says it.
    pub(crate) fn silent(code: u8) -> anyhow::Error {
        Silent(code).into()
    }

    /// What happened and why.
    pub(crate) fn in_one_line(&self) -> String {
        let parts = [Some(&self.what), self.why.as_ref(), self.hint.as_ref()];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// Something that ended otherwise than it should, in the words of who knows.
    pub(crate) fn ended(what: &str, why: &str) -> Self {
        Self { what: what.to_owned(), why: Some(why.to_owned()), hint: None, usage: false, hub: None }
    }

    /// The same where nothing wrong was typed.
    pub(crate) fn not_of_usage(self) -> Self {
        Self { usage: false, ..self }
    }

    /// The same, said of one of several clusters.
    pub(crate) fn within(self, cluster: &str) -> Self {
        Self { what: format!("{cluster}: {}", self.what), ..self }
    }

    /// A file that was named cannot be read.
    pub(crate) fn unreadable(error: &anyhow::Error) -> Self {
        let hint = Some("use a kubeconfig that this user can read".to_owned());
        Self { what: error.to_string(), why: chain(error.chain().nth(1)), hint, usage: true, hub: None }
    }

    pub(crate) fn dns(error: &ServerError) -> Self {
        let why = chain(std::error::Error::source(error));
        Self { what: format!("cannot serve DNS: {error}"), why, hint: error.hint(), usage: false, hub: None }
    }

    pub(crate) fn lb(error: &atoll_lb::LbError) -> Self {
        let why = chain(std::error::Error::source(error));
        Self { what: error.to_string(), why, hint: None, usage: false, hub: None }
    }

    pub(crate) fn lb_hub(error: &atoll_lb_kube::ClientError) -> Self {
        let why = chain(std::error::Error::source(error));
        let hint = "name a file, and a context that is in it (`kubectl config get-contexts`)".to_owned();
        Self { what: error.to_string(), why, hint: Some(hint), usage: true, hub: None }
    }

    pub(crate) fn lb_config(error: &atoll_lb::file::FileError) -> Self {
        let why = chain(std::error::Error::source(error));
        let hint = Some("see `atoll lb --help` for an example".to_owned());
        Self { what: error.to_string(), why, hint, usage: true, hub: None }
    }

    pub(crate) fn setup(doing: &str, error: &SetupError) -> Self {
        let why = match error {
            SetupError::Api { source, .. } => Some(connect::why(source)),
            SetupError::NoCorefile { .. }
            | SetupError::NoServers(_)
            | SetupError::ServedByOthers(_)
            | SetupError::Raced => None,
        };
        Self { what: format!("cannot {doing}: {error}"), why, hint: error.hint(), usage: false, hub: None }
    }

    pub(crate) fn no_data_dir() -> Self {
        Self {
            what: "cannot determine the data directory of the hub".to_owned(),
            why: Some("HOME is not set".to_owned()),
            hint: Some("set --data-dir".to_owned()),
            usage: true,
            hub: None,
        }
    }

    pub(crate) fn no_data(data_dir: &Path) -> Self {
        Self {
            what: format!("no data of a hub in {}", data_dir.display()),
            why: None,
            hint: Some("use the --data-dir that the hub was started with".to_owned()),
            usage: true,
            hub: None,
        }
    }

    /// The hub's own API does not start.
    pub(crate) fn own_api(error: &anyhow::Error) -> Self {
        let hint = match error.downcast_ref::<HostError>() {
            Some(HostError::Serve(_)) => {
                "use another --api-address, or an existing API server with --kubeconfig"
            }
            Some(HostError::Open(OpenError::InUse { .. })) => {
                "another hub is running with this --data-dir; stop it, or use another directory"
            }
            Some(HostError::Open(OpenError::Encrypted { .. })) => {
                "set --encryption-key-file to a file with this key"
            }
            _ => "check the --data-dir, or restore it from a backup with `atoll hub restore`",
        };
        let why = std::iter::once(error.to_string()).chain(chain(error.chain().nth(1))).collect::<Vec<_>>();
        Self {
            what: "cannot start the hub's own API server".to_owned(),
            why: Some(why.join(": ")),
            hint: Some(hint.to_owned()),
            usage: false,
            hub: None,
        }
    }

    pub(crate) fn restore(data_dir: &Path, error: &RestoreError) -> Self {
        let hint = match error {
            RestoreError::NotEmpty { .. } => {
                Some("use another directory, or --force to move existing data to restore.old".to_owned())
            }
            RestoreError::InUse { .. } => Some("stop the hub first".to_owned()),
            RestoreError::Backup { .. } => Some("use another backup; nothing was changed".to_owned()),
            RestoreError::Format { .. } => Some("use the version of atoll that wrote the backup".to_owned()),
            RestoreError::Read(_) | RestoreError::Write { .. } | RestoreError::Store(_) => None,
        };
        let usage = matches!(error, RestoreError::NotEmpty { .. });
        Self {
            what: format!("cannot restore into {}", data_dir.display()),
            why: Some(error.to_string()),
            hint,
            usage,
            hub: None,
        }
    }

    pub(crate) fn connect(error: &ConnectError) -> Self {
        let why = std::error::Error::source(error).map(ToString::to_string);
        let usage = matches!(error, ConnectError::Kubeconfig { .. });
        Self { what: error.to_string(), why, hint: error.hint(), usage, hub: None }
    }

    fn of_hub(error: &HubError) -> Self {
        let why = match error {
            HubError::Api(error) => Some(connect::why(error)),
            HubError::Memory(_)
            | HubError::Seal(_)
            | HubError::Listen { .. }
            | HubError::Explain { .. }
            | HubError::Twin(_)
            | HubError::BadLease(_)
            | HubError::NoIdentity => chain(std::error::Error::source(error)),
        };
        let usage = matches!(error, HubError::BadLease(_) | HubError::NoIdentity);
        Self { what: error.to_string(), why, hint: error.hint(), usage, hub: None }
    }
}

/// Ends a command in which several things may have failed: all but the last are told here.
pub(crate) fn report_all(mut failures: Vec<Failure>) -> anyhow::Result<()> {
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in failures {
        eprint!("{}", render(&failure.into()).0);
    }
    Err(last.into())
}

/// The text for stderr, and the exit code.
pub(crate) fn render(error: &anyhow::Error) -> (String, ExitCode) {
    if let Some(Silent(code)) = error.downcast_ref::<Silent>() {
        return (String::new(), ExitCode::from(*code));
    }
    let own;
    let failure = if let Some(failure) = error.downcast_ref::<Failure>() {
        failure
    } else {
        own = if let Some(error) = error.downcast_ref::<HubError>() {
            Failure::of_hub(error)
        } else if let Some(error) = error.downcast_ref::<ConnectError>() {
            Failure::connect(error)
        } else {
            Failure {
                what: error.to_string(),
                why: chain(error.chain().nth(1)),
                hint: None,
                usage: false,
                hub: None,
            }
        };
        &own
    };
    let mut text = format!("error: {}\n", failure.what);
    for (label, line) in [("hub", &failure.hub), ("why", &failure.why), ("hint", &failure.hint)] {
        if let Some(line) = line {
            text.push_str(&format!("  {label}: {line}\n"));
        }
    }
    let code = match error.downcast_ref::<ExitWith>() {
        Some(ExitWith(code)) => ExitCode::from(*code),
        None if failure.usage => ExitCode::from(USAGE),
        None => ExitCode::FAILURE,
    };
    (text, code)
}

fn chain(first: Option<&(dyn std::error::Error + 'static)>) -> Option<String> {
    let mut texts = Vec::new();
    let mut next = first;
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    if texts.is_empty() { None } else { Some(texts.join(": ")) }
}
