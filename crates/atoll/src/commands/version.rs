//! `atoll version`: of this program, and of the hub.

use atoll_api::explain::ClusterSetStatus;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::commands::ask::Asked;
use crate::context::WhichHub;
use crate::failure::Failure;
use crate::objects::rest::Form;
use crate::output::Format;

/// Print the versions of this program and of the hub.
#[derive(Args)]
#[command(after_help = "Examples:
  # Both versions
  atoll version

  # This program only, without asking a hub
  atoll version --client

  # The version of the hub that leads
  atoll version -o json | jq -r .hub.version")]
pub(crate) struct Version {
    /// Do not ask the hub.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    hub: WhichHub,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Both versions.
#[derive(Debug, Serialize)]
struct Versions {
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<HubVersion>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HubVersion {
    url: String,
    /// Of Atoll; nothing if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
    /// Of its Kubernetes API.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
}

impl Version {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let client = env!("CARGO_PKG_VERSION");
        if self.client {
            let versions = Versions { client, hub: None };
            return self.output.print(|| versions.text(None), &versions);
        }
        match self.of_hub().await {
            Ok((hub, place, said)) => {
                let versions = Versions { client, hub: Some(hub) };
                self.output.print(|| versions.text(Some(&place)), &versions)?;
                if let Some(said) = said {
                    eprintln!("note: {said}");
                }
                Ok(())
            }
            Err(failure) => {
                let versions = Versions { client, hub: None };
                self.output.print(|| versions.text(None), &versions)?;
                Err(failure.into())
            }
        }
    }

    /// The hub's version, where it is, and why more is not known.
    async fn of_hub(&self) -> Result<(HubVersion, String, Option<String>), Failure> {
        let asked = Asked::hub(&self.hub).await?;
        let place = &asked.hub.place;
        let rest = asked.hub.rest()?;
        let served = rest.get("/version", Form::Objects).await;
        let served = served.map_err(|error| place.failure("cannot get the version of the hub", &error))?;
        let kubernetes = served.get("gitVersion").and_then(Value::as_str).map(str::to_owned);
        let url = place.url.clone().unwrap_or_default();
        let (version, leader, said) = match asked.status().await {
            Ok(ClusterSetStatus { version, leader, .. }) => (Some(version), Some(leader), None),
            Err(failure) => (
                None,
                None,
                Some(format!("the version of Atoll in the hub is not known: {}", failure.in_one_line())),
            ),
        };
        Ok((HubVersion { url, version, leader, kubernetes }, place.shown(), said))
    }
}

impl Versions {
    fn text(&self, place: Option<&str>) -> String {
        let mut text = format!("client  {}\n", self.client);
        if let (Some(hub), Some(place)) = (&self.hub, place) {
            let version = hub.version.as_deref().unwrap_or("unknown");
            let leader = hub.leader.as_ref().map(|name| format!(", led by {name}")).unwrap_or_default();
            let kubernetes =
                hub.kubernetes.as_ref().map(|version| format!(", Kubernetes {version}")).unwrap_or_default();
            text.push_str(&format!("hub     {version}{leader}{kubernetes}, {place}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_a_line() {
        let hub = |version: Option<&str>| HubVersion {
            url: "https://h".to_owned(),
            version: version.map(str::to_owned),
            leader: version.map(|_| "hub-1".to_owned()),
            kubernetes: Some("v1.36.0".to_owned()),
        };
        for (hub, place, want) in [
            (None, None, "client  1.0\n"),
            (
                Some(hub(Some("1.1"))),
                Some("https://h"),
                "client  1.0\nhub     1.1, led by hub-1, Kubernetes v1.36.0, https://h\n",
            ),
            (
                Some(hub(None)),
                Some("https://h"),
                "client  1.0\nhub     unknown, Kubernetes v1.36.0, https://h\n",
            ),
        ] {
            assert_eq!(Versions { client: "1.0", hub }.text(place), want);
        }
    }
}
