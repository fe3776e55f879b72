//! `atoll check`: what of the clusterset works, what does not, and what to do first.

mod control;
mod dns;
mod path;
mod report;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use atoll_api::types::Cluster;
use clap::{Args, ValueEnum};
use kube::{Client, ResourceExt};
use tokio::time::Instant;

use crate::context::HubApi;
use crate::failure::Failure;
use crate::output::Format;
use report::{Report, Style};
use ways::{Contexts, Way};

/// The image of the probe's pod: anything with `sh`, `nc`, `nslookup` and `timeout`.
const IMAGE: &str = "busybox:1.37";
/// How many services are probed with --data-path.
const MOST_SERVICES: usize = 20;
/// Between two runs with --wait.
const PAUSE: Duration = Duration::from_secs(1);

/// Check the clusterset, and find what is wrong.
///
/// Checks the hub, the members and their DNS. With --service it also checks the data path: it runs a pod for a few seconds in the
/// service's namespace of each client cluster, and connects from there to the service by address, by cluster IP and by name. The pod
/// is deleted afterwards.
#[derive(Args)]
#[command(after_help = "Examples:
  # Check the hub and all members
  atoll check

  # Find out why pods of tokyo can't reach a service
  atoll check --service shop/web --from tokyo

  # The same, with more rights than the hub has: contexts named as the members
  atoll check --service shop/web --cluster-kubeconfig ~/.kube/config

  # Wait until everything works, for at most two minutes
  atoll check --wait 2m

  # Print what is wrong, the first cause first
  atoll check -o json | jq -r '.causes[].code'

Exit codes: 0 no check failed, 1 a check failed, 2 usage error. docs/check.md explains each check.")]
pub(crate) struct Check {
    #[command(flatten)]
    hub: HubApi,
    /// Member to check. Can be repeated [default: all].
    #[arg(long = "cluster", short = 'C', value_name = "NAME", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Service whose data path is checked. Can be repeated.
    #[arg(long = "service", value_name = "[NAMESPACE/]NAME", value_parser = service)]
    services: Vec<(String, String)>,
    /// Cluster whose pods are the clients. Can be repeated [default: all that are checked].
    #[arg(long, value_name = "CLUSTER", value_delimiter = ',')]
    from: Vec<String>,
    /// Check the data path of all exported services, but at most of 20.
    #[arg(long, conflicts_with = "services")]
    data_path: bool,
    /// Kubeconfig with a context for each member, named as the member. It is used in place of the hub's credentials, which may
    /// neither create pods nor read pods, NetworkPolicies and the Corefile.
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: Option<PathBuf>,
    /// Image of the pod that connects: any with sh, nc, nslookup and timeout.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// Check again until nothing fails, for at most this long.
    #[arg(long, value_name = "DURATION", value_parser = atoll_duration::parse)]
    wait: Option<Duration>,
    /// When to use colors and Unicode marks.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    color: Color,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never: plain ASCII.
    Never,
}

impl Color {
    fn style(self) -> Style {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|key| std::env::var(key).ok().filter(|one| !one.is_empty()));
        let unicode = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        match self {
            Self::Never => Style { color: false, unicode: false },
            Self::Always => Style { color: true, unicode },
            Self::Auto => {
                let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                Style { color: !plain && std::io::stdout().is_terminal(), unicode }
            }
        }
    }
}

fn service(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    let label = |text: &str| {
        !text.is_empty()
            && text.len() <= 63
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if label(namespace) && label(name) {
        Ok((namespace.to_owned(), name.to_owned()))
    } else {
        Err(format!("`{text}` is not a service such as web or shop/web"))
    }
}

impl Check {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        crate::logs::warnings_only();
        let contexts = self.contexts()?;
        let hub = self.hub.find().await?.client()?;
        let begun = Instant::now();
        let report = loop {
            let report = Box::pin(self.once(&hub, contexts.as_ref())).await?;
            match self.wait {
                Some(wait) if !report.ok && begun.elapsed() < wait => tokio::time::sleep(PAUSE).await,
                Some(_) | None => break report,
            }
        };
        self.output.print(|| report.text(self.color.style()), &report)?;
        if report.ok { Ok(()) } else { Err(Failure::silent(1)) }
    }

    /// The contexts that lead to members: of the named file, or of the sandbox whose hub is meant.
    fn contexts(&self) -> anyhow::Result<Option<Contexts>> {
        let file = match &self.cluster_kubeconfig {
            Some(file) => file.clone(),
            None => match self.hub.which.sandbox() {
                Some(file) => file,
                None => return Ok(None),
            },
        };
        Ok(Some(Contexts::read(&file).map_err(|error| Failure::connect(&error))?))
    }

    async fn once(&self, client: &Client, contexts: Option<&Contexts>) -> anyhow::Result<Report> {
        let hub = Box::pin(control::hub(client, &self.hub.namespace)).await;
        let all: Vec<Cluster> = hub.clusters.clone().unwrap_or_default();
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        if hub.clusters.is_ok()
            && let Some(unknown) = self.clusters.iter().chain(&self.from).find(|name| !names.contains(name))
        {
            let what = format!("the hub has no member `{unknown}`");
            return Err(Failure::usage(&what, &format!("its members are {}", names.join(", "))).into());
        }
        let ways =
            futures_util::future::join_all(names.iter().map(|name| ways::way(client, name, contexts))).await;
        let wanted = |name: &String| self.clusters.is_empty() || self.clusters.contains(name);
        let looked = all.iter().zip(&ways).filter(|(_, way)| wanted(&way.name));
        let looked = looked.map(|(cluster, way)| control::member(client, cluster.clone(), way));
        let members = async { futures_util::future::join_all(looked).await };
        let named = async {
            // With named services nothing has to be known of the members first.
            if self.services.is_empty() {
                None
            } else {
                Some(self.paths(&ways, &BTreeMap::new(), self.services.iter().cloned().collect()).await)
            }
        };
        let (members, named) = tokio::join!(members, named);
        let mut checks = control::judge(&hub, &all, &members, env!("CARGO_PKG_VERSION"));
        let paths = if self.data_path {
            let exported: BTreeSet<(String, String)> =
                members.iter().flat_map(|one| one.exports.iter().cloned()).collect();
            let dns = members.iter().map(|one| (one.name.clone(), one.dns.clone())).collect();
            Some(self.paths(&ways, &dns, exported.into_iter().take(MOST_SERVICES).collect()).await)
        } else {
            named
        };
        let paths = paths.unwrap_or_default();
        checks.extend(paths.checks);
        Ok(Report::of(checks, paths.needs.into_iter().collect(), hub.status))
    }

    async fn paths(
        &self,
        ways: &[Way],
        dns: &BTreeMap<String, path::facts::Dns>,
        services: BTreeSet<(String, String)>,
    ) -> path::Found {
        let from = if self.from.is_empty() { self.clusters.clone() } else { self.from.clone() };
        path::check(ways, dns, &path::Wish { services, from, image: self.image.clone() }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_with_or_without_its_namespace() {
        let pair = |one: &str, other: &str| Ok((one.to_owned(), other.to_owned()));
        assert_eq!(service("web"), pair("default", "web"));
        assert_eq!(service("shop/web"), pair("shop", "web"));
        for bad in ["", "shop/", "/web", "a/b/c", "Web", "web;reboot"] {
            assert!(service(bad).is_err(), "{bad}");
        }
    }
}
