//! A member's token is replaced at half its life, by one that its own API issues. The new one goes into the member's Secret; from
//! there it reaches the running member like any other, and nothing is interrupted.

use std::time::Duration;

use atoll_api::names::secret;
use atoll_engine::names::ClusterId;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::membership::connect::{code, why};
use crate::membership::credentials::{self, Life};
use crate::membership::session::{Issuer, Sessions};
use atoll_member::TokenError;

/// A token is not renewed sooner, whatever the clocks say.
const SOONEST: i64 = 60;
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// How long a token is good enough. Both clocks may be wrong: the shorter of what was asked and what was promised counts.
fn due_in(life: Life, now: Timestamp) -> Duration {
    let promised = life.expires.as_second().saturating_sub(life.issued.as_second());
    let half = promised.min(life.asked).max(2 * SOONEST) / 2;
    let due = life.issued.as_second().saturating_add(half);
    Duration::from_secs(u64::try_from(due.saturating_sub(now.as_second())).unwrap_or_default())
}

/// Waits until the token is due, and replaces it, for as long as that takes.
pub(crate) async fn renew(sessions: &Sessions, id: &ClusterId, link: &Due, issuer: &Issuer) {
    tokio::time::sleep(due_in(link.life, Timestamp::now())).await;
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt(sessions, link, issuer).await {
            Ok(()) => return tracing::info!(cluster = %id, "renewed the member's token"),
            Err(why) => {
                tracing::warn!(cluster = %id, why, expires = %link.life.expires, "cannot renew the member's token; if it expires, join the member again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A token that has to be replaced.
pub(crate) struct Due {
    /// The Secret that has it.
    pub(crate) secret: String,
    pub(crate) token: String,
    pub(crate) life: Life,
}

async fn attempt(sessions: &Sessions, due: &Due, issuer: &Issuer) -> Result<(), String> {
    if !sessions.permit.holds() {
        return Err("this hub is not the leader".to_owned());
    }
    let issued_at = Timestamp::now();
    let issued = issuer.issue(due.life.asked).await.map_err(|error| match &error {
        TokenError::Api(cause) => format!("{error}: {}", why(cause)),
        TokenError::Empty => error.to_string(),
    })?;
    let api: Api<Secret> = Api::namespaced(sessions.hub.clone(), &sessions.namespace);
    let found = api.get(&due.secret).await.map_err(|error| why(&error))?;
    if credentials::read(&found).is_none_or(|now| now.token != due.token) {
        return Ok(()); // a user has joined it again
    }
    let text = |text: String| ByteString(text.into_bytes());
    let patch = json!({
        "metadata": { "resourceVersion": found.resource_version() },
        "data": {
            secret::TOKEN: text(issued.token),
            secret::TOKEN_ISSUED_AT: text(issued_at.to_string()),
            secret::TOKEN_EXPIRES_AT: text(issued.expires.to_string()),
            secret::TOKEN_LIFETIME: text(due.life.asked.to_string()),
        },
    });
    match api.patch(&due.secret, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some(409) => {
            Err("somebody else changed the Secret meanwhile".to_owned())
        }
        Err(error) => Err(why(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_at_half_its_life_however_wrong_the_clocks_are() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let life = |issued, expires, asked| Life { issued: at(issued), expires: at(expires), asked };
        for (life, now, want) in [
            (life(0, 1000, 1000), 0, 500),
            (life(0, 1000, 1000), 400, 100),
            (life(0, 1000, 1000), 700, 0),
            // The API shortened it.
            (life(0, 600, 100_000), 0, 300),
            // The member's clock is ahead, behind, and far behind.
            (life(0, 90_000, 1000), 0, 500),
            (life(0, 200, 1000), 0, 100),
            (life(1000, 0, 1000), 1000, 60),
            (life(1000, 0, -5), 1000, 60),
        ] {
            assert_eq!(due_in(life, at(now)), Duration::from_secs(want), "{life:?} at {now}");
        }
    }
}
