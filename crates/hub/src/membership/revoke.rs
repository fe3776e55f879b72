//! Takes back every token that the hub has for a member, at once, wherever copies of them are.

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};

use crate::membership::clusterset;
use crate::membership::connect::{code, why};
use crate::membership::join::rbac;
use crate::options::NAMESPACE;

/// Why tokens were not revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// The hub's API can't be reached, or refuses something.
    #[error("the hub's API failed to answer a request")]
    Hub(#[source] Box<kube::Error>),
    /// The member's API can't be reached, or refuses something.
    #[error("the member's API failed to answer a request")]
    Member(#[source] Box<kube::Error>),
    /// The account is another hub's.
    #[error("the ServiceAccount {} in the member was not created by this hub", rbac::NAME)]
    OtherHub,
}

impl RevokeError {
    /// The facts behind it.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Hub(error) | Self::Member(error) => Some(why(error)),
            Self::OtherHub => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Hub(_) => "check --kubeconfig and --context".to_owned(),
            Self::Member(error) if matches!(code(error), Some(401 | 403)) => {
                "use --cluster-kubeconfig with a kubeconfig of the member's administrator".to_owned()
            }
            Self::Member(_) => {
                "check that the member's API is reachable from this host, or use --cluster-kubeconfig"
                    .to_owned()
            }
            Self::OtherHub => "use the kubeconfig of the hub that the cluster is a member of".to_owned(),
        }
    }
}

/// What was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// Whether there was an account to delete.
    pub account: bool,
}

/// Deletes the hub's account in the member, and with it every token of it. `member` may be the hub's own way in, or an
/// administrator's.
pub async fn revoke(hub: &Client, namespace: &str, member: &Client) -> Result<Revoked, RevokeError> {
    let hub_uid =
        clusterset::hub_uid(hub, namespace).await.map_err(|error| RevokeError::Hub(Box::new(error)))?;
    let in_member = |error| RevokeError::Member(Box::new(error));
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let Some(account) = accounts.get_opt(rbac::NAME).await.map_err(in_member)? else {
        return Ok(Revoked { account: false });
    };
    if !rbac::is_of(&account, &hub_uid) {
        return Err(RevokeError::OtherHub);
    }
    // The account goes first: with it our own token may end.
    delete(&accounts, &account).await.map_err(in_member)?;
    let secrets: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    for name in [atoll_member::BOUND_TO, rbac::TOKEN] {
        let done = async {
            match secrets.get_opt(name).await? {
                Some(secret) if rbac::is_of(&secret, &hub_uid) => delete(&secrets, &secret).await,
                Some(_) | None => Ok(()),
            }
        };
        match done.await {
            Ok(()) => {}
            Err(error) if matches!(code(&error), Some(401 | 403)) => {} // it revokes nothing any more
            Err(error) => return Err(in_member(error)),
        }
    }
    Ok(Revoked { account: true })
}

async fn delete<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let only = Preconditions { uid: object.uid(), resource_version: None };
    match api.delete(&object.name_any(), &DeleteParams::default().preconditions(only)).await {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}
