//! Fills Secrets of service accounts with tokens, as a controller of Kubernetes does.

use atoll_watch::{Config, Event, watch};
use futures_util::StreamExt;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::pin::pin;

/// Which Secrets are meant.
const KIND: &str = "kubernetes.io/service-account-token";
/// On such a Secret: whose token it holds.
const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// Ten years: a token of a real controller has no end.
const LASTS: i64 = 10 * 365 * 86_400;

/// Fills them until it is dropped.
pub(crate) async fn run(client: Client) {
    let config = Config::default().fields(&format!("type={KIND}"));
    let mut secrets = pin!(watch(Api::<Secret>::all(client.clone()), config));
    while let Some(event) = secrets.next().await {
        match event {
            Event::Seen(secret) => {
                if let Err(error) = fill(&client, &secret).await {
                    // The Secret's next change brings it here again, and so does the next list.
                    tracing::warn!(secret = secret.name_any(), %error, "cannot give a token");
                }
            }
            Event::Failed(failure) => tracing::debug!(%failure, "the watch of Secrets failed"),
            Event::ListStarted | Event::Gone(_) | Event::Listed | Event::Following => {}
        }
    }
}

async fn fill(client: &Client, secret: &Secret) -> kube::Result<()> {
    let filled = secret.data.as_ref().is_some_and(|data| data.contains_key("token"));
    let (Some(account), false) = (secret.annotations().get(ACCOUNT), filled) else { return Ok(()) };
    let namespace = secret.namespace().unwrap_or_default();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(LASTS), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let token = answer.status.and_then(|status| status.token).unwrap_or_default();
    let patch = json!({"stringData": {"token": token, "namespace": namespace}});
    let secrets = Api::<Secret>::namespaced(client.clone(), &namespace);
    secrets.patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}
