//! Which cluster is behind a link: asked before anything is done there. Until it answers it counts as silent.

use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;
use atoll_link::{Down, Up};

use crate::membership::clean;
use crate::membership::health::{self, Health};
use crate::membership::roster::Link;
use crate::membership::session::{Answer, Heard, Sessions};

/// Asks for as long as it takes: the uid of the kube-system behind the link, if there is one. `leaving`: it is asked so that the
/// right cluster is cleaned.
pub(crate) async fn ask(sessions: &Sessions, id: &ClusterId, link: &Link, leaving: bool) -> Option<String> {
    let mut session = match sessions.open(id, link, leaving) {
        Ok(session) => session,
        Err(why) => {
            tracing::warn!(cluster = %id, why, "the member's credentials can't be used");
            unusable(sessions, id, why, leaving).await;
            return std::future::pending().await; // until there are others
        }
    };
    session.send(Down::Identify);
    while let Some(answer) = session.answer().await {
        if let Answer::Identity(uid) = answer {
            return uid.map(|uid| uid.to_string());
        }
    }
    std::future::pending().await
}

async fn unusable(sessions: &Sessions, id: &ClusterId, why: String, leaving: bool) {
    let up = Up::Unreachable { silent_for: Duration::ZERO, why: why.clone() };
    let _ = sessions.reports.send(Heard { from: id.clone(), at: Instant::now(), up });
    if sessions.permit.holds() {
        let why = if leaving { clean::stuck(&why) } else { why };
        health::show(&sessions.hub, id, &Health::Unknown { why }).await;
    }
}
