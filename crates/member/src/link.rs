//! The member's end of the link: what the hub says goes where it belongs, what the member says goes up.
//!
//! Words are handed on at once, by whoever brings them: a lease never waits behind a plan, and a plan in the same process takes
//! no way round.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use atoll_engine::names::ClusterId;
use atoll_link::{Down, Identity, Problem, Up};
use tokio::task::JoinSet;
use tracing::debug;

use crate::copies::{self, Copies};
use crate::health::{self, Doctor};
use crate::shell::{self, Services};
use crate::{Clients, Permit, clean, identify};

/// Where a member's words go. Clones lead to the same place.
#[derive(Clone)]
pub struct Uplink(Arc<dyn Fn(Up) + Send + Sync>);

impl Uplink {
    /// Each word is given to `hear`, in order; it must not block.
    pub fn new(hear: impl Fn(Up) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Tells the hub.
    pub fn send(&self, up: Up) {
        (self.0)(up);
    }
}

impl fmt::Debug for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uplink")
    }
}

/// A member. It ends when this is dropped: nothing is sent after that.
#[derive(Debug)]
pub struct Handle(Downlink);

/// Where the hub's words go. Clones lead to the same member.
#[derive(Debug, Clone)]
pub struct Downlink(Arc<Member>);

#[derive(Debug)]
struct Member {
    cluster: ClusterId,
    clients: Clients,
    up: Uplink,
    permit: Permit,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    running: Option<Running>,
    /// The last question, or the cleaning, under way.
    asked: JoinSet<()>,
}

/// All that a member does once it is started.
#[derive(Debug)]
struct Running {
    services: Services,
    copies: Copies,
    doctor: Doctor,
    health: JoinSet<()>,
}

/// A member's end of the link, for the cluster behind these clients. It does nothing until it is told to.
pub fn spawn(cluster: ClusterId, clients: Clients, up: Uplink) -> Handle {
    let (permit, tasks) = (Permit::new(), Mutex::default());
    Handle(Downlink(Arc::new(Member { cluster, clients, up, permit, tasks })))
}

impl Handle {
    /// Where to say things to it.
    pub fn downlink(&self) -> &Downlink {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        *self.0.0.tasks() = Tasks::default();
        self.0.0.permit.revoke();
    }
}

impl Downlink {
    /// Takes what the hub says. `sent`: when it was sent, or an earlier moment; a lease counts from then.
    pub fn send(&self, sent: Instant, down: Down) {
        let Member { cluster, clients, up, permit, .. } = &*self.0;
        match down {
            Down::Lease(lease) => permit.follow(lease, sent),
            Down::Assign(assignment) => self.0.running(|running| running.services.assign(assignment)),
            Down::Order { key, order } => self.0.running(|running| running.copies.order(key, order)),
            Down::Look => self.0.running(|running| running.doctor.look()),
            Down::Identify => {
                self.0.ask(identify::until_known(cluster.clone(), clients.questions.clone(), up.clone()));
            }
            Down::Start(identity) => self.0.start(&identity),
            Down::Clean { identity, kinds } => {
                let (clients, permit, up) = (clients.clone(), permit.clone(), up.clone());
                self.0.ask(clean::clean(identity, clients, permit, kinds, up));
            }
            Down::GiveBack(identity) => {
                self.0.ask(clean::give_back(identity, clients.clone(), permit.clone(), up.clone()));
            }
            Down::Stop => self.0.stop(),
        }
    }
}

impl Member {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self, act: impl FnOnce(&Running)) {
        match &self.tasks().running {
            Some(running) => act(running),
            None => debug!(cluster = %self.cluster, "was told something before it was started"),
        }
    }

    /// The answer to an older question is not waited for.
    fn ask(&self, question: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        tasks.asked.abort_all();
        while tasks.asked.try_join_next().is_some() {}
        tasks.asked.spawn(question);
    }

    fn start(&self, identity: &Identity) {
        let mut tasks = self.tasks();
        if tasks.running.is_some() {
            return;
        }
        let doctor = Doctor::default();
        let mut health = JoinSet::new();
        let (cluster, questions) = (self.cluster.clone(), self.clients.questions.clone());
        health.spawn(health::keep(cluster, questions, doctor.clone(), self.up.clone()));
        let (clients, permit) = (self.clients.clone(), self.permit.clone());
        let copies = copies::spawn(identity, clients.clone(), permit.clone(), self.up.clone());
        let up = noting(doctor.clone(), self.up.clone());
        let services = shell::spawn(identity.clone(), clients, permit, up);
        tasks.running = Some(Running { services, copies, doctor, health });
    }

    fn stop(&self) {
        let mut tasks = self.tasks();
        tasks.asked.abort_all();
        let (running, up) = (tasks.running.take(), self.up.clone());
        tokio::spawn(async move {
            if let Some(Running { services, copies, health, .. }) = running {
                drop(health);
                tokio::join!(services.stop(), copies.stop());
            }
            up.send(Up::Stopped);
        });
    }
}

/// Rights that are missing concern the member's health too.
fn noting(doctor: Doctor, up: Uplink) -> Uplink {
    Uplink::new(move |said| {
        if let Up::Problem(problem @ Problem::Forbidden { verb, kind, .. }) = &said {
            doctor.forbidden((*verb, *kind), problem.to_string());
        }
        up.send(said);
    })
}
