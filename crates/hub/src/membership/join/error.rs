//! Why a join failed, and what to do about it.

use atoll_member::{EnterError, TokenError};

use super::Refusal;
use crate::membership::connect::{ConnectError, code, why};

/// Why a cluster could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The name is no name for a member.
    #[error("`{name}` is not a valid name for a member")]
    BadName {
        /// What was given.
        name: String,
    },
    /// The name is no name for a clusterset.
    #[error("`{name}` is not a valid name for a clusterset")]
    BadClusterset {
        /// What was given.
        name: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// It may not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The kubeconfig leads nowhere.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The member's API can't be reached, or refuses something.
    #[error("the member's API failed to answer a request")]
    Member(#[source] Box<kube::Error>),
    /// The hub's API can't be reached, or refuses something.
    #[error("the hub's API failed to answer a request")]
    Hub(#[source] Box<kube::Error>),
    /// A user's credentials do not count any more.
    #[error("the credentials for {place} were rejected: they are expired or revoked")]
    Unauthorized {
        /// Whose API.
        place: &'static str,
    },
    /// The user may not do what a join needs.
    #[error("the user lacks rights in {place} that a join needs")]
    Forbidden {
        /// Whose API.
        place: &'static str,
        /// What is missing, each as `verb resource`.
        missing: Vec<String>,
    },
    /// A cluster that can't be told from others.
    #[error("the cluster has no namespace kube-system, which identifies it")]
    NoKubeSystem,
    /// The clusterset has another name.
    #[error("the clusterset of this hub has the name `{is}`, not `{wished}`")]
    OtherClusterset {
        /// What was asked.
        wished: String,
        /// What it is.
        is: String,
    },
    /// No token came.
    #[error("the cluster issued no token for the hub's ServiceAccount")]
    NoToken(#[source] TokenError),
    /// A lifetime that no API server issues tokens for.
    #[error("a token cannot last for {seconds} s")]
    BadLifetime {
        /// What was asked.
        seconds: u64,
    },
    /// The certificate would not be checked.
    #[error("the kubeconfig turns off the check of the API server's certificate")]
    Insecure,
    /// Tokens would be sent in clear.
    #[error("the endpoint `{endpoint}` does not use TLS")]
    PlainHttp {
        /// The address.
        endpoint: String,
    },
    /// The hub's credentials do not work.
    #[error("the new credentials for the hub do not work at {endpoint}")]
    NotUsable {
        /// The address tried.
        endpoint: String,
        /// What happened.
        why: String,
    },
    /// The kinds or properties could not be put into the member.
    #[error("cannot prepare the cluster")]
    Enter(#[source] Box<EnterError>),
}

impl JoinError {
    pub(super) fn member(error: kube::Error) -> Self {
        match code(&error) {
            Some(401) => Self::Unauthorized { place: "the member" },
            _ => Self::Member(Box::new(error)),
        }
    }

    pub(super) fn hub(error: kube::Error) -> Self {
        match code(&error) {
            Some(401) => Self::Unauthorized { place: "the hub" },
            _ => Self::Hub(Box::new(error)),
        }
    }

    pub(super) fn entering(error: EnterError) -> Self {
        Self::Enter(Box::new(error))
    }

    /// The facts behind it.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::BadName { .. } => {
                Some("a name is a DNS label (a-z, 0-9 and inner dashes) of at most 48 characters".to_owned())
            }
            Self::BadClusterset { .. } => Some(
                "a name consists of DNS labels (a-z, 0-9 and inner dashes), separated by dots".to_owned(),
            ),
            Self::Interrupted => Some(
                "a signal ended the command; its changes were rolled back, except for those in warnings above"
                    .to_owned(),
            ),
            Self::Refused(Refusal::NameTaken { theirs, ours }) => {
                Some(format!("the member has kube-system UID {theirs}, the cluster of this kubeconfig has {ours}"))
            }
            Self::Refused(Refusal::JoinedAs { uid, .. }) => Some(format!("both have kube-system UID {uid}")),
            Self::Refused(Refusal::Overlaps { .. }) => {
                Some("traffic to an address in both networks would stay in the cluster of the client".to_owned())
            }
            Self::Member(error) | Self::Hub(error) => Some(why(error)),
            Self::Forbidden { missing, .. } => Some(format!("missing: {}", missing.join(", "))),
            Self::NotUsable { why, .. } => Some(why.clone()),
            Self::Enter(error) => Some(match &**error {
                EnterError::Api { error: said, .. } => format!("{error}: {}", why(said)),
                EnterError::OtherProperty { .. }
                | EnterError::OtherHub { .. }
                | EnterError::NotServed { .. } => error.to_string(),
            }),
            Self::Connect(error) => std::error::Error::source(error).map(ToString::to_string),
            Self::NoToken(TokenError::Api(error)) => Some(why(error)),
            Self::NoToken(TokenError::Empty) => None,
            Self::BadLifetime { .. } => Some("Kubernetes issues tokens for 10 minutes to about 136 years".to_owned()),
            Self::Insecure => Some("anybody on the way to it could read the hub's token".to_owned()),
            Self::PlainHttp { .. } => Some("the hub's token would be sent in clear".to_owned()),
            Self::Refused(Refusal::ClaimsHub) => {
                Some("a cluster that takes the identity of another one is not let in".to_owned())
            }
            Self::Refused(Refusal::StillLeaving)
            | Self::Unauthorized { .. }
            | Self::NoKubeSystem
            | Self::OtherClusterset { .. } => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self, name: &str) -> Option<String> {
        Some(match self {
            Self::BadName { .. } => "choose another name, such as `paris` or `eu-west-1`".to_owned(),
            Self::Refused(Refusal::NameTaken { .. }) => {
                format!("choose another name, or run `atoll unjoin {name}` if the old cluster is gone")
            }
            Self::Refused(Refusal::JoinedAs { name, .. }) => {
                format!("nothing to do; to change its name, run `atoll unjoin {name}` first")
            }
            Self::Refused(Refusal::StillLeaving) => {
                format!("wait, or run `atoll unjoin {name} --force` if the old cluster is gone")
            }
            Self::Refused(Refusal::Overlaps { .. }) => {
                "change one of the networks, or use --allow-overlap and accept that traffic to shared addresses may reach the wrong cluster".to_owned()
            }
            Self::Connect(error) => return error.hint(),
            Self::Member(_) => "check --cluster-kubeconfig and --cluster-context, and that the API server is reachable from this host".to_owned(),
            Self::Hub(_) => "check --kubeconfig and --context, and that the API server is reachable from this host".to_owned(),
            Self::Unauthorized { place: "the hub" } => "log in again, or use another --context".to_owned(),
            Self::Unauthorized { .. } => "log in again, or use another --cluster-context".to_owned(),
            Self::Forbidden { .. } => "use credentials of an administrator; the hub gets its own account with fewer rights".to_owned(),
            Self::NoKubeSystem => return None,
            Self::OtherClusterset { is, .. } => format!("remove --clusterset, or use --clusterset {is}"),
            Self::NoToken(_) => "check that the user of --cluster-kubeconfig may create serviceaccounts/token".to_owned(),
            Self::BadLifetime { .. } => "use another --token-lifetime, such as 720h".to_owned(),
            Self::Insecure => "put the CA's certificate into the kubeconfig; or use --allow-insecure here and --allow-insecure-members at the hub".to_owned(),
            Self::PlainHttp { .. } => "use an https:// address, in the kubeconfig or in --api-endpoint".to_owned(),
            Self::Refused(Refusal::ClaimsHub) => {
                "check which cluster the kubeconfig is for; a copy of the hub's cluster needs a kube-system of its own".to_owned()
            }
            Self::NotUsable { .. } => {
                "if the hub needs another address for the cluster's API, set --api-endpoint".to_owned()
            }
            Self::BadClusterset { .. } => "use another --clusterset, such as `prod`, or remove the flag".to_owned(),
            Self::Interrupted => "run the same command again to join".to_owned(),
            Self::Enter(error) => match &**error {
                EnterError::OtherProperty { .. } | EnterError::OtherHub { .. } => {
                    "the cluster belongs to another clusterset: unjoin it there first, or ask the owner of the ClusterProperty to delete it".to_owned()
                }
                EnterError::NotServed { crd } => {
                    format!("check the conditions of this CRD in the cluster: `kubectl get crd {crd} -o yaml`")
                }
                EnterError::Api { .. } => {
                    "check that the user of --cluster-kubeconfig is an administrator, and that the API server is reachable from this host".to_owned()
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_could_not_be_prepared_says_what_the_api_said_and_what_fits_it() {
        let said = kube::Error::Api(kube::core::Status::failure("crds are off limits", "Forbidden").boxed());
        let refused = EnterError::Api { doing: "install x".to_owned(), error: Box::new(said) };
        let refused = JoinError::entering(refused);
        assert!(refused.why().unwrap().contains("crds are off limits"), "{:?}", refused.why());
        assert!(!refused.hint("paris").unwrap().contains("ClusterProperty"));
        let theirs = EnterError::OtherHub { name: "clusterset.k8s.io", hub: "h2".to_owned() };
        assert!(JoinError::entering(theirs).hint("paris").unwrap().contains("ClusterProperty"));
    }
}
