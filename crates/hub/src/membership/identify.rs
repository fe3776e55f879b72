//! Which cluster is behind a link: asked before anything is done there. Until it answers it counts as silent.

use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;
use atoll_link::{Down, Up};

use crate::membership::clean;
use crate::membership::credentials::Link;
use crate::membership::health::{self, Health};
use crate::membership::roster::{Answered, When};
use crate::membership::session::{Answer, Heard, Sessions};

/// How long one waits that did not answer as it should.
const AGAIN: Duration = Duration::from_secs(10);

/// Asks for as long as it takes. `leaving`: it is asked so that the right cluster is cleaned.
pub(crate) async fn ask(
    sessions: &Sessions,
    id: &ClusterId,
    link: &Link,
    when: When,
    leaving: bool,
) -> Answered {
    if when == When::Later {
        tokio::time::sleep(AGAIN).await;
    }
    let mut session = match sessions.open(id, link, leaving) {
        Ok(session) => session,
        Err(error) => {
            let why = error.to_string();
            tracing::warn!(cluster = %id, why, "the member's credentials can't be used");
            unusable(sessions, id, why, leaving).await;
            return std::future::pending().await; // until there are others
        }
    };
    session.send(Down::Identify);
    while let Some(answer) = session.answer().await {
        if let Answer::Identity(uid, called) = answer {
            let called = called.filter(|called| *called.hub == *sessions.uid).map(|called| called.cluster);
            return Answered { uid: uid.map(|uid| uid.to_string()), called };
        }
    }
    std::future::pending().await
}

async fn unusable(sessions: &Sessions, id: &ClusterId, why: String, leaving: bool) {
    let up = Up::Unreachable { silent_for: Duration::ZERO, why: why.clone() };
    let _ = sessions.reports.send(Heard { from: id.clone(), at: Instant::now(), up });
    if sessions.permit.holds() {
        let why = if leaving { clean::stuck(&why) } else { why };
        health::show(&sessions.hub, &sessions.told, id, &Health::Unknown { why }).await;
    }
}
