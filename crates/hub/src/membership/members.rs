//! The members' tasks: started, stopped, cleaned, each on its own, so that none delays another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_engine::names::ClusterId;
use atoll_engine::network::{Networks, Ranges};
use atoll_link::{Assignment, Down, Identity, Lease};
use atoll_member::Permit;
use atoll_member::events::Events;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, JoinSet};

use crate::leader::lead::Context;
use crate::membership::clean;
use crate::membership::clusterset;
use crate::membership::connect::why;
use crate::membership::credentials::Link;
use crate::membership::health::{self, Health};
use crate::membership::identify;
use crate::membership::pin;
use crate::membership::renew;
use crate::membership::roster::{Event, NoLink, When};
use crate::membership::session::{Heard, Session, Sessions};
use crate::policies::Policies;

/// How long all members together may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The members that run, and what is being done about others.
pub(crate) struct Members {
    context: Context,
    hub: Arc<str>,
    clusterset: Arc<str>,
    permit: Permit,
    sessions: Sessions,
    events: UnboundedSender<Event>,
    policies: Policies,
    running: BTreeMap<ClusterId, Session>,
    asking: BTreeMap<ClusterId, AbortHandle>,
    cleaning: BTreeMap<ClusterId, AbortHandle>,
    renewing: BTreeMap<ClusterId, AbortHandle>,
    /// What is known of their networks is being shown.
    showing: BTreeMap<ClusterId, AbortHandle>,
    chores: JoinSet<()>,
    /// The write of who is a member: the newest replaces the one under way.
    recording: Option<AbortHandle>,
}

impl Members {
    pub(crate) fn new(
        context: Context,
        hub: Arc<str>,
        clusterset: Arc<str>,
        (permit, told): (Permit, Events),
        reports: UnboundedSender<Heard>,
        events: UnboundedSender<Event>,
        policies: Policies,
    ) -> Self {
        let (client, copies) = (context.client.clone(), policies.reports());
        let sessions = Sessions {
            hub: client,
            uid: Arc::clone(&hub),
            namespace: context.options.namespace.as_str().into(),
            permit: permit.clone(),
            reports,
            copies,
            audit: context.options.audit.clone(),
            sealer: policies.sealer(),
            told,
        };
        Self {
            context,
            hub,
            clusterset,
            permit,
            sessions,
            events,
            policies,
            running: BTreeMap::new(),
            asking: BTreeMap::new(),
            cleaning: BTreeMap::new(),
            renewing: BTreeMap::new(),
            showing: BTreeMap::new(),
            chores: JoinSet::new(),
            recording: None,
        }
    }

    /// Asks which cluster is behind the link, until it answers.
    pub(crate) fn ask(&mut self, id: &ClusterId, link: Link, when: When, leaving: bool) {
        self.unask(id);
        let (sessions, events, id_of) = (self.sessions.clone(), self.events.clone(), id.clone());
        let asking = self.chores.spawn(async move {
            let answered = identify::ask(&sessions, &id_of, &link, when, leaving).await;
            let _ = events.send(Event::Identified(id_of, Box::new(link), answered));
        });
        self.asking.insert(id.clone(), asking);
    }

    pub(crate) fn unask(&mut self, id: &ClusterId) {
        if let Some(asking) = self.asking.remove(id) {
            asking.abort();
        }
    }

    /// Starts a member; one that has no usable way in is shown as such.
    pub(crate) fn start(&mut self, id: &ClusterId, link: &Link) {
        match self.sessions.open(id, link, false) {
            Ok(session) => {
                session.send(Down::Start(self.identity(id)));
                self.policies.started(id.clone(), session.tell());
                self.renew(id, link, &session);
                self.running.insert(id.clone(), session);
            }
            Err(problem) => self.unusable(id.clone(), problem.to_string()),
        }
    }

    /// A member that runs gets another token.
    pub(crate) fn show_token(&mut self, id: &ClusterId, link: &Link) {
        let Some(session) = self.running.remove(id) else { return };
        match session.show_token(&link.token) {
            Ok(()) => self.renew(id, link, &session),
            Err(problem) => self.unusable(id.clone(), problem.to_string()),
        }
        self.running.insert(id.clone(), session);
    }

    /// Renews its token when that is due.
    fn renew(&mut self, id: &ClusterId, link: &Link, session: &Session) {
        self.keep_token(id);
        let Some(life) = link.life else { return };
        let due = renew::Due { secret: link.secret.clone(), token: link.token.clone(), life };
        let (sessions, issuer, id_of) = (self.sessions.clone(), session.issuer(), id.clone());
        let renewing = self.chores.spawn(async move { renew::renew(&sessions, &id_of, &due, &issuer).await });
        self.renewing.insert(id.clone(), renewing);
    }

    /// Its token is not renewed any more.
    fn keep_token(&mut self, id: &ClusterId) {
        if let Some(renewing) = self.renewing.remove(id) {
            renewing.abort();
        }
    }

    /// Stops a member; says so when its last report has been sent.
    pub(crate) fn stop(&mut self, id: &ClusterId) {
        self.keep_token(id);
        let (events, id) = (self.events.clone(), id.clone());
        self.policies.stopped(id.clone());
        let running = self.running.remove(&id);
        if let Some(running) = &running {
            running.hide();
        }
        self.chores.spawn(async move {
            if let Some(session) = running {
                session.stop().await;
            }
            let _ = events.send(Event::Stopped(id));
        });
    }

    /// Stops all, at the end.
    pub(crate) async fn stop_all(mut self) {
        // Before anything else is waited for: another hub may lead already.
        for session in self.running.values() {
            session.send(Down::Lease(Lease::Revoked));
        }
        self.chores.shutdown().await;
        let mut stops = JoinSet::new();
        for (_, session) in std::mem::take(&mut self.running) {
            session.hide();
            stops.spawn(session.stop());
        }
        let all = async { while stops.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_WITHIN, all).await.is_err() {
            tracing::warn!("some members did not stop in time");
        }
    }

    pub(crate) fn assign(&self, id: &ClusterId, assignment: Assignment) {
        if let Some(running) = self.running.get(id) {
            running.send(Down::Assign(assignment));
        }
    }

    /// Its health may have changed.
    pub(crate) fn look_at(&self, id: &ClusterId) {
        if let Some(running) = self.running.get(id) {
            running.send(Down::Look);
        }
    }

    /// Cleans a member that leaves; with a new link, if it is being cleaned already.
    pub(crate) fn clean(&mut self, id: ClusterId, link: Link) {
        let (sessions, identity) = (self.sessions.clone(), self.identity(&id));
        let (events, of) = (self.events.clone(), id.clone());
        let cleaning = self.chores.spawn(async move {
            clean::clean(sessions, identity, link).await;
            let _ = events.send(Event::Cleaned(of));
        });
        if let Some(older) = self.cleaning.insert(id, cleaning) {
            older.abort();
        }
    }

    /// Lets its `Cluster` go, and touches nothing in the cluster.
    pub(crate) fn release(&mut self, id: ClusterId) {
        let (hub, permit, events) = (self.context.client.clone(), self.permit.clone(), self.events.clone());
        let namespace = Arc::clone(&self.sessions.namespace);
        self.chores.spawn(async move {
            clean::let_go(hub, &namespace, &id, permit).await;
            let _ = events.send(Event::Cleaned(id));
        });
    }

    /// Keeps its `Cluster` from going before it has been cleaned.
    pub(crate) fn hold(&mut self, id: ClusterId) {
        let hub = self.context.client.clone();
        self.chores.spawn(async move {
            if let Err(error) = clean::hold(&hub, &id).await {
                tracing::warn!(cluster = %id, why = why(&error), "cannot add the finalizer");
            }
        });
    }

    /// Shows why it can't be reached at all.
    pub(crate) fn blocked(&mut self, id: ClusterId, blocked: &NoLink) {
        let health = blocked.health(&id);
        tracing::warn!(cluster = %id, why = health.why(), "the member can't be used");
        self.show(id, health);
    }

    /// Writes down who is a member, for as long as it takes or until another member has come or gone.
    pub(crate) fn record(&mut self, members: BTreeMap<ClusterId, Option<String>>) {
        let Context { client, options, .. } = self.context.clone();
        let permit = self.permit.clone();
        if let Some(older) = self.recording.take() {
            older.abort();
        }
        self.recording = Some(self.chores.spawn(async move {
            while permit.holds() {
                match clusterset::record(&client, &options.namespace, &members).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(why = why(&error), "cannot save the list of members"),
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        }));
    }

    /// Writes down what was learnt of its networks.
    pub(crate) fn pin(&mut self, id: ClusterId, learnt: Ranges) {
        let (sessions, permit) = (self.sessions.clone(), self.permit.clone());
        self.chores.spawn(async move {
            let (hub, namespace) = (&sessions.hub, &sessions.namespace);
            pin::write(hub, namespace, &permit, &sessions.told, &id, &learnt).await;
        });
    }

    /// Shows what is known of its networks, if that is not shown yet.
    pub(crate) fn show_networks(&mut self, id: ClusterId, networks: Networks) {
        let (hub, permit) = (self.context.client.clone(), self.permit.clone());
        if let Some(older) = self.showing.remove(&id) {
            older.abort();
        }
        let of = id.clone();
        let showing = self.chores.spawn(async move { pin::show(&hub, &permit, &of, &networks).await });
        self.showing.insert(id, showing);
    }

    /// Copies what its `Cluster` says of its networks to its Secret, where it counts.
    pub(crate) fn bind_networks(&mut self, id: ClusterId) {
        let (sessions, permit) = (self.sessions.clone(), self.permit.clone());
        self.chores.spawn(async move {
            pin::bind(&sessions.hub, &sessions.namespace, &permit, &sessions.told, &id).await;
        });
    }

    fn unusable(&mut self, id: ClusterId, problem: String) {
        tracing::warn!(cluster = %id, why = problem, "the member's credentials can't be used");
        self.show(id, Health::Unknown { why: problem });
    }

    fn show(&mut self, id: ClusterId, health: Health) {
        let (hub, told) = (self.context.client.clone(), self.sessions.told.clone());
        self.chores.spawn(async move { health::show(&hub, &told, &id, &health).await });
    }

    fn identity(&self, id: &ClusterId) -> Identity {
        Identity { cluster: id.clone(), hub: Arc::clone(&self.hub), clusterset: Arc::clone(&self.clusterset) }
    }
}
