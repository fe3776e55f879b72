//! The floor of policies: what a template in the hub costs at least.
//!
//! ```text
//!   hub: the policy is there ─▶ per template: its binding, then one copy per member, then the binding's status
//!   hub: a template changes ──▶ one PUT per member
//! ```
//!
//! The binding goes first because it is what a restarted hub knows of copies by; a product without that order would leave some behind.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams, Request};
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use tokio::sync::Semaphore;

use super::in_hub::Hub;
use super::{Floor, IN_FLIGHT, Made, Threads, job, watch};
use crate::environment::Cluster;
use crate::error::Error;
use crate::objects::hub as objects;
use crate::objects::{ROLE, SOURCE};
use crate::options::Who;

impl Floor {
    /// Starts the floor of policies from `hub` to every member.
    pub(crate) async fn of_policies(hub: &Cluster, members: &[Cluster]) -> Result<Self, Error> {
        let threads = Threads::start()?;
        let jobs = Arc::new(AtomicUsize::new(0));
        let (hub, members, of_state) = (hub.clone(), members.to_vec(), Arc::clone(&jobs));
        threads
            .run(async move {
                let mut targets = Vec::new();
                for member in &members {
                    targets.push(Arc::new(Target::new(member.client().await?)));
                }
                let state = State {
                    hub: Arc::new(Hub::new(hub.client().await?)),
                    members: targets.into(),
                    names: members.into_iter().map(|member| member.name).collect(),
                    templates: HashMap::new(),
                    selected: false,
                    jobs: of_state,
                };
                tokio::spawn(state.run(hub.client().await?));
                Ok(())
            })
            .await?;
        Ok(Self { threads, jobs })
    }
}

struct Known {
    template: Arc<ConfigMap>,
    begun: bool,
}

struct State {
    hub: Arc<Hub>,
    members: Arc<[Arc<Target>]>,
    names: Arc<[String]>,
    templates: HashMap<String, Known>,
    /// Whether the policy is there.
    selected: bool,
    jobs: Arc<AtomicUsize>,
}

impl State {
    async fn run(mut self, hub: kube::Client) {
        let mut maps = std::pin::pin!(watch(Api::<ConfigMap>::all(hub)));
        while let Some(event) = maps.next().await {
            let (map, gone) = match event {
                watcher::Event::Apply(map) | watcher::Event::InitApply(map) => (map, false),
                watcher::Event::Delete(map) => (map, true),
                watcher::Event::Init | watcher::Event::InitDone => continue,
            };
            if map.metadata.namespace.as_deref() != Some(Who::Floor.namespace()) {
                continue;
            }
            match map.labels().get(ROLE).map(String::as_str) {
                Some(SOURCE) => self.template(map, gone),
                Some(objects::POLICY) => self.policy(gone),
                Some(_) | None => {}
            }
        }
    }

    fn policy(&mut self, gone: bool) {
        self.selected = !gone;
        let names: Vec<_> = self.templates.keys().cloned().collect();
        names.iter().for_each(|name| self.begin(name));
    }

    fn template(&mut self, map: ConfigMap, gone: bool) {
        let name = map.name_any();
        if gone {
            self.templates.remove(&name);
            self.members.iter().for_each(|member| member.forget(&name));
            return;
        }
        let template = Arc::new(map);
        let known = self.templates.entry(name.clone());
        let known = known.or_insert_with(|| Known { template: Arc::clone(&template), begun: false });
        known.template = Arc::clone(&template);
        if known.begun {
            let members = Arc::clone(&self.members);
            job(&self.jobs, async move {
                join_all(members.iter().map(|member| member.hold(&template))).await;
            });
        } else {
            self.begin(&name);
        }
    }

    /// The first sync of one template, once the policy is there.
    fn begin(&mut self, name: &str) {
        let Some(known) = self.templates.get_mut(name).filter(|known| self.selected && !known.begun) else {
            return;
        };
        known.begun = true;
        let (hub, members) = (Arc::clone(&self.hub), Arc::clone(&self.members));
        let (template, names, name) = (Arc::clone(&known.template), Arc::clone(&self.names), name.to_owned());
        job(&self.jobs, async move {
            let Some(binding) = hub.bind("ConfigMap", &name, &names).await else { return };
            join_all(members.iter().map(|member| member.hold(&template))).await;
            hub.say_applied(binding, &names).await;
        });
    }
}

/// A member that is written to.
struct Target {
    client: kube::Client,
    maps: Request,
    permits: Semaphore,
    /// The resourceVersion of every copy held.
    versions: Mutex<HashMap<String, String>>,
}

impl Target {
    fn new(client: kube::Client) -> Self {
        Self {
            client,
            maps: Request::new(ConfigMap::url_path(&(), Some(Who::Floor.namespace()))),
            permits: Semaphore::new(IN_FLIGHT),
            versions: Mutex::default(),
        }
    }

    /// Makes the member hold what the template says.
    async fn hold(&self, template: &ConfigMap) {
        let Some(mut copy) = objects::copied_map(template) else { return };
        let name = copy.name_any();
        copy.metadata.resource_version =
            self.versions.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let Ok(body) = serde_json::to_vec(&copy) else { return };
        let put = PostParams::default();
        let request = match copy.metadata.resource_version {
            Some(_) => self.maps.replace(&name, &put, body),
            None => self.maps.create(&put, body),
        };
        let (Ok(request), Ok(_permit)) = (request, self.permits.acquire().await) else { return };
        let made = self.client.request::<Made>(request).await;
        match made.map(|made| made.metadata.resource_version) {
            Ok(Some(version)) => {
                self.versions.lock().unwrap_or_else(PoisonError::into_inner).insert(name, version);
            }
            Ok(None) => {}
            Err(error) => eprintln!("bench: a write of the floor failed: {error}"),
        }
    }

    fn forget(&self, name: &str) {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
