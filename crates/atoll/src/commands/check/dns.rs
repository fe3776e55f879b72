//! How the DNS of a cluster stands to `atoll dns`.

use std::time::Duration;

use atoll_api::names::label;
use atoll_dns::Name;
use atoll_dns_server::manifest;
use atoll_dns_server::setup::{Setup, SetupError, State};
use atoll_hub::connect;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client};

use super::path::facts::{Dns, Led};
use super::ways::{Trouble, Way, ask};

/// The zone of the clusterset.
pub(super) const ZONE: &str = "clusterset.local";
/// What is needed to look.
pub(super) const NEEDS: &str = "get configmaps in `kube-system` and `atoll-system`";
/// For the three requests of a look.
const PATIENCE: Duration = Duration::from_secs(4);

/// Looks how things stand, and changes nothing.
pub(super) async fn look(way: &Way) -> Dns {
    let client = match way.any() {
        Ok(client) => client,
        Err(why) => return Dns { led: Led::Unknown(why.to_owned()), servers: None },
    };
    let (led, servers) = tokio::join!(led(client), servers(client));
    Dns { led, servers }
}

async fn led(client: &Client) -> Led {
    let Ok(zone) = Name::parse(ZONE) else { return Led::Unknown(format!("`{ZONE}` is no zone")) };
    let setup = Setup {
        namespace: "kube-system".to_owned(),
        config_map: "coredns".to_owned(),
        key: "Corefile".to_owned(),
        zone,
        servers: Vec::new(),
        own_namespace: atoll_hub::options::NAMESPACE.to_owned(),
    };
    match tokio::time::timeout(PATIENCE, setup.look(client)).await {
        Err(_) => Led::Unknown("no answer in time".to_owned()),
        Ok(Ok(look)) => match look.state {
            State::InPlace => Led::InPlace,
            State::Absent | State::Outdated | State::Reverted { .. } if look.multicluster => {
                Led::Multicluster
            }
            State::Absent => Led::Absent,
            State::Outdated => Led::Outdated,
            State::Reverted { applied } => Led::Reverted(applied),
        },
        Ok(Err(error)) => match error {
            SetupError::NoCorefile { .. } => Led::NoCorefile,
            SetupError::NoServers(_) => Led::Absent,
            SetupError::ServedByOthers(_) => Led::Others,
            SetupError::Raced => Led::Unknown("the Corefile is being written".to_owned()),
            SetupError::Api { source, .. } => Led::Unknown(connect::why(&source)),
        },
    }
}

/// Whether a server is ready; none if there are none to be ready.
async fn servers(client: &Client) -> Option<bool> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), atoll_hub::options::NAMESPACE);
    let ours = ListParams::default().labels(&format!("{}={}", label::SERVICE_NAME, manifest::NAME)).limit(50);
    match ask(slices.list(&ours)).await {
        Ok(list) if list.items.is_empty() => None,
        Ok(list) => {
            let endpoints = list.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let mut ready =
                endpoints.map(|one| one.conditions.as_ref().and_then(|of| of.ready) != Some(false));
            Some(ready.any(|ready| ready))
        }
        Err(Trouble::Forbidden(_) | Trouble::Missing | Trouble::Silent(_) | Trouble::Other(_)) => None,
    }
}
