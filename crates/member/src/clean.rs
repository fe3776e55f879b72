//! A member leaves: what is ours goes from it, and, when that has been written down, our rights there.

use std::collections::BTreeSet;

use atoll_api::names::label;
use atoll_engine::placement::object::Kind;
use atoll_link::{Identity, Up};
use atoll_watch::why;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::{Client, ResourceExt};

use crate::audit::{Cause, because};
use crate::copies::leave_copies;
use crate::leave::{LeaveError, leave};
use crate::shell::failure::code;
use crate::{Clients, Permit, Uplink};

/// The `ClusterRole` that gives a hub its rights in a member. Everything else that `join` makes there belongs to this one object.
pub const ROLE: &str = "atoll-hub";

/// Removes everything of ours, once; says whether that was possible.
pub(crate) async fn clean(
    identity: Identity,
    clients: Clients,
    permit: Permit,
    kinds: BTreeSet<Kind>,
    up: Uplink,
) {
    let leaving = clients.cause(leaving);
    let cleaned = because(leaving, async {
        let copies = leave_copies(&identity, &clients, &permit, kinds).await;
        copies.map_err(|error| error.to_string())?;
        leave(&identity, &clients, &permit).await.map(drop).map_err(|error| match &error {
            LeaveError::Failed { error: cause, .. } => format!("{error}: {}", why(cause)),
            LeaveError::NotPermitted { .. } => error.to_string(),
        })
    });
    up.send(match cleaned.await {
        Ok(()) => Up::Cleaned,
        Err(why) => Up::NotCleaned { why },
    });
}

/// Gives our rights in the member back, and no other hub's.
pub(crate) async fn give_back(identity: Identity, clients: Clients, permit: Permit, up: Uplink) {
    if !permit.holds() {
        return up.send(Up::NotCleaned { why: "this hub does not lead any more".to_owned() });
    }
    up.send(match because(clients.cause(leaving), revoke(&clients.writes, &identity.hub)).await {
        Ok(()) => Up::GaveBack,
        Err(error) => Up::NotCleaned { why: why(&error) },
    });
}

fn leaving() -> Cause {
    Cause { name: String::new(), reason: "the member leaves the clusterset".to_owned() }
}

async fn revoke(member: &Client, hub: &str) -> Result<(), kube::Error> {
    let api: Api<ClusterRole> = Api::all(member.clone());
    let revoked = async {
        let Some(role) = api.get_opt(ROLE).await? else { return Ok(()) };
        if role.labels().get(label::HUB).is_none_or(|of| of != hub) {
            tracing::warn!("the ClusterRole {ROLE} in the member was not created by this hub, and is kept");
            return Ok(());
        }
        let only = Preconditions { uid: role.uid(), resource_version: None };
        api.delete(ROLE, &DeleteParams::default().preconditions(only)).await.map(drop)
    };
    match revoked.await {
        Ok(()) => Ok(()),
        // Gone by now, or another hub's by now, or we have no rights left to give back.
        Err(error) if matches!(code(&error), Some(401 | 403 | 404 | 409)) => {
            tracing::debug!(why = why(&error), "cannot delete the hub's rights in the member");
            Ok(())
        }
        Err(error) => Err(error),
    }
}
