//! Asks a member which cluster it is, before anything is done there. Until it answers it counts as silent.

use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;
use atoll_member::{Permit, Report};
use kube::Client;
use tokio::sync::mpsc::UnboundedSender;

use crate::membership::clean;
use crate::membership::clusterset;
use crate::membership::connect;
use crate::membership::health::{self, Health};
use crate::membership::roster::Link;

/// How long it may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Who is asked, and who is told that it does not answer.
pub(crate) struct Question {
    pub(crate) hub: Client,
    pub(crate) permit: Permit,
    pub(crate) reports: UnboundedSender<(ClusterId, Report)>,
    pub(crate) id: ClusterId,
    /// It is asked so that the right cluster is cleaned.
    pub(crate) leaving: bool,
}

impl Question {
    /// The uid of the kube-system behind the link, if there is one. Asks for as long as it takes.
    pub(crate) async fn ask(&self, link: &Link) -> Option<String> {
        let member = connect::of_link(link).map_err(|error| error.to_string());
        let member =
            member.and_then(|config| connect::client(config).map_err(|error| connect::with_cause(&error)));
        let member = match member {
            Ok(member) => member,
            Err(why) => {
                tracing::warn!(cluster = %self.id, why, "the member's credentials can't be used");
                self.silent(Instant::now(), &why);
                self.show(Health::Unknown { why: self.explained(why) }).await;
                std::future::pending().await // until there are others
            }
        };
        let (mut pause, mut shown) = (FIRST_PAUSE, None);
        loop {
            let asked = Instant::now();
            let health = match tokio::time::timeout(DEADLINE, clusterset::cluster_uid(&member)).await {
                Ok(Ok(uid)) => return uid,
                Ok(Err(error)) => match connect::code(&error) {
                    Some(_) => Health::NotReady { why: self.explained(connect::why(&error)) },
                    None => Health::NotReachable { why: self.explained(connect::why(&error)) },
                },
                Err(_) => {
                    let why = format!("no answer within {} s", DEADLINE.as_secs());
                    Health::NotReachable { why: self.explained(why) }
                }
            };
            self.silent(asked, health.why());
            if shown.as_ref() != Some(&health) && self.show(health.clone()).await {
                shown = Some(health);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn explained(&self, why: String) -> String {
        if self.leaving { clean::stuck(&why) } else { why }
    }

    fn silent(&self, since: Instant, why: &str) {
        let _ = self.reports.send((self.id.clone(), Report::Unreachable { since, why: why.to_owned() }));
    }

    async fn show(&self, health: Health) -> bool {
        if !self.permit.holds() {
            return false;
        }
        match health::write(&self.hub, &self.id, &health).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(cluster = %self.id, why = connect::why(&error), "cannot write the member's status");
                false
            }
        }
    }
}
