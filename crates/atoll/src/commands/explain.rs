//! `atoll explain`: why a service is as it is, or whose an address is.

mod address;
mod changes;
mod narrow;
mod text;

use std::time::Duration;

use atoll_api::explain::{ServiceExplanation, Subject};
use atoll_api::names::code::Code;
use clap::Args;
use clap_complete::ArgValueCandidates;

use crate::commands::ask::{Asked, similar};
use crate::complete;
use crate::context::WhichHub;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::paint::ColorFlag;
use crate::{plugin, signals};

/// How often the hub is asked with `--watch`.
const EVERY: Duration = Duration::from_millis(500);

/// Explain why a service is reachable or not, in each cluster.
///
/// The leading hub answers from its own state: who exports the service and who wins conflicts, who imports it, which endpoints are used
/// and why others are not, and what a change waits for. Each reason has a code; docs/reasons.md lists them.
#[derive(Args)]
#[command(after_help = "Examples:
  # Why can clients not reach a service?
  atoll explain web -n shop

  # What one cluster holds, with each endpoint of one other cluster
  atoll explain shop/web --in tokyo --from paris

  # A name as clients use it, or an address that was seen somewhere
  atoll explain web.shop.svc.clusterset.local
  atoll explain 10.12.0.7

  # Follow what changes, with times
  atoll explain shop/web --watch

  # The reasons only
  atoll explain shop/web -o json | jq -r '.. | .code? // empty' | sort -u

The first line is the verdict; each line that tells of trouble has a next step.
Exit codes: 0 explained, 1 failure, 2 usage error.")]
pub(crate) struct Explain {
    /// Service as NAME, NAMESPACE/NAME or NAME.NAMESPACE; a DNS name of it; or an IP address.
    #[arg(value_name = "SERVICE", add = ArgValueCandidates::new(complete::services))]
    subject: String,
    /// Namespace of the service [default: the context's].
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCandidates::new(complete::namespaces))]
    namespace: Option<String>,
    /// Explain only what this cluster has, in full.
    #[arg(long = "in", value_name = "CLUSTER", add = ArgValueCandidates::new(complete::clusters))]
    cluster: Option<String>,
    /// Explain only what comes from this cluster.
    #[arg(long = "from", value_name = "CLUSTER", add = ArgValueCandidates::new(complete::clusters))]
    source: Option<String>,
    /// Show everything: each reason, and each endpoint that could be used.
    #[arg(long)]
    all: bool,
    /// Show what changes from now on, with times, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    hub: WhichHub,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    color: ColorFlag,
}

/// A service that is asked for.
struct Question {
    namespace: String,
    name: String,
    from: Option<String>,
}

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let subject = Subject::parse(&self.subject).map_err(|error| {
            Failure::usage(&error.to_string(), &format!("for example `{} explain shop/web`", plugin::name()))
        })?;
        let asked = Asked::hub(&self.hub).await?;
        match subject {
            Subject::Address(address) => {
                let Some(answer) = asked.address(address).await? else {
                    return Err(Failure::plain(
                        &format!("the hub knows nothing of the address {address}"),
                        "declare the networks of members: `atoll join NAME --pod-cidr`",
                    )
                    .at(&asked.hub.place.shown())
                    .into());
                };
                self.output.print(|| address::text(&answer, self.color.paint()), &answer)
            }
            Subject::Service { namespace, name, cluster, hostname } => {
                if let (Some(said), Some(flag)) = (&namespace, &self.namespace)
                    && said != flag
                {
                    let what =
                        format!("`{}` is in the namespace {said}, and --namespace is {flag}", self.subject);
                    return Err(Failure::usage(&what, "leave out --namespace").into());
                }
                if let Some(hostname) = hostname {
                    eprintln!(
                        "note: endpoints are explained by their addresses; `{hostname}` is the host name of one of them"
                    );
                }
                let namespace = namespace.or_else(|| self.namespace.clone());
                let namespace = namespace.unwrap_or_else(|| asked.hub.config.default_namespace.clone());
                let question = Question { namespace, name, from: self.source.clone().or(cluster) };
                if self.watch {
                    self.follow(&asked, &question).await
                } else {
                    self.once(&asked, &question).await
                }
            }
        }
    }

    async fn once(&self, asked: &Asked, question: &Question) -> anyhow::Result<()> {
        let answer = self.ask(asked, question).await?;
        self.print(asked, &answer)?;
        if self.output == Format::Text && is_unknown(&answer) {
            for line in self.suggestions(asked, question).await {
                output::text(&format!("    next: {line}\n"))?;
            }
        }
        Ok(())
    }

    async fn ask(&self, asked: &Asked, question: &Question) -> Result<ServiceExplanation, Failure> {
        let Question { namespace, name, from } = question;
        let Some(answer) = asked.service(namespace, name).await? else {
            let hints = self.suggestions(asked, question).await;
            let failure =
                Failure::plain(&format!("the hub knows no service {namespace}/{name}"), &hints.join("; "));
            return Err(failure.at(&asked.hub.place.shown()));
        };
        narrow::to(answer, self.cluster.as_deref(), from.as_deref())
    }

    /// What could have been meant.
    async fn suggestions(&self, asked: &Asked, question: &Question) -> Vec<String> {
        let Question { namespace, name, .. } = question;
        let known = match asked.services(None).await {
            Ok(known) => known,
            // Who may see one namespace only.
            Err(_) => asked.services(Some(namespace)).await.unwrap_or_default(),
        };
        let near = similar(&format!("{namespace}/{name}"), known.iter().map(String::as_str));
        let program = plugin::name();
        match near.as_slice() {
            [] => vec![format!(
                "check the namespace (-n) and the spelling; export it with a ServiceExport `{name}` in the namespace `{namespace}` of a cluster that has the Service"
            )],
            near => near.iter().map(|name| format!("did you mean `{program} explain {name}`?")).collect(),
        }
    }

    fn print(&self, asked: &Asked, answer: &ServiceExplanation) -> anyhow::Result<()> {
        let full = self.all || self.cluster.is_some();
        let how = text::How { full, paint: self.color.paint(), hub: &asked.hub.place.shown() };
        self.output.print(|| text::text(answer, how), answer)
    }

    /// Prints what is, then what changes.
    async fn follow(&self, asked: &Asked, question: &Question) -> anyhow::Result<()> {
        let mut last = self.ask(asked, question).await?;
        self.print(asked, &last)?;
        if self.output == Format::Text {
            eprintln!("following changes; times are those of the hub, in UTC; Ctrl-C ends it");
        }
        let ended = signals::shutdown()?;
        let mut ended = std::pin::pin!(ended);
        let mut trouble = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = &mut ended => return Ok(()),
            }
            let next = match self.ask(asked, question).await {
                Ok(next) => next,
                Err(failure) => {
                    let said = failure.to_string();
                    if trouble.as_ref() != Some(&said) {
                        eprintln!("{said}; trying again");
                    }
                    trouble = Some(said);
                    continue;
                }
            };
            if trouble.take().is_some() {
                eprintln!("the hub answers again");
            }
            let changes = changes::between(&last, &next);
            if changes.is_empty() {
                continue;
            }
            let written = match self.output {
                Format::Text => output::write_text(&changes::shown(&next.at, &changes))?,
                Format::Json => output::write_text(&format!("{}\n", serde_json::to_string(&next)?))?,
                Format::Yaml => output::write_text(&format!("---\n{}", serde_saphyr::to_string(&next)?))?,
            };
            if !written {
                return Ok(());
            }
            last = next;
        }
    }
}

/// Whether nothing at all is known of the service: perhaps its name is wrong.
fn is_unknown(answer: &ServiceExplanation) -> bool {
    answer.verdict.code == Code::NotExported
        && answer.multi_cluster_service.is_none()
        && answer.template.is_none()
        && answer.clusters.iter().all(|part| part.export.is_none() && !part.import.present)
}
