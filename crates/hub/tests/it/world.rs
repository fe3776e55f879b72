//! A hub, and members that it reaches over TLS on the loopback, with the rights that a join gives it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_api::crds;
use atoll_api::names::{annotation, kind};
use atoll_hub::Options;
use atoll_hub::balancing::Balancing;
use atoll_hub::explain::Questions;
use atoll_hub::join::{Location, Propagation, Request, TOKEN_LIFETIME};
use atoll_hub::networks::{Networks, Ranges};
use atoll_kubeapi::authn::{MASTERS, TokenAuthenticator, User};
use atoll_kubeapi::author::Stamping;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::Store;
use atoll_lb_kube::Pool;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) type Outcome = anyhow::Result<()>;

const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const HUB: &str = "atoll-system";
/// Who the hub is on its API.
const ITSELF: &str = "atoll-hub";
/// How soon a hub of these tests asks about authors again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A cluster that is only an API.
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) client: Client,
    api: atoll_kubeapi::Api,
    pki: Arc<Pki>,
    server: Option<(SocketAddr, JoinHandle<()>)>,
}

impl Cluster {
    pub(crate) async fn start(name: &str) -> anyhow::Result<Self> {
        let pki = Pki::ephemeral(&["127.0.0.1".to_owned()], jiff::Timestamp::now().as_second())?;
        let options =
            atoll_kubeapi::Options::default().stamping(stamping()).tokens(TokenAuthenticator::new(&pki)?);
        let api = atoll_kubeapi::Api::start(Store::memory(), options).await?;
        let client = Client::new(api.admin(), "default");
        Ok(Self { name: name.to_owned(), client, api, pki: Arc::new(pki), server: None })
    }

    /// Serves it on the loopback; again on the same port after [`Self::cut`].
    pub(crate) async fn serve(&mut self) -> anyhow::Result<SocketAddr> {
        let wanted = self.server.as_ref().map_or(([127, 0, 0, 1], 0).into(), |(address, _)| *address);
        let give_up = tokio::time::Instant::now() + PATIENCE;
        let server = loop {
            match Server::bind(wanted, &self.pki).await {
                // Whoever was cut has yet to let go of it.
                Err(_) if wanted.port() != 0 && tokio::time::Instant::now() < give_up => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                bound => break bound?,
            }
        };
        let address = server.address()?;
        let task = tokio::spawn(server.run(self.api.clone()));
        self.server = Some((address, task));
        Ok(address)
    }

    /// It is served where another one was.
    pub(crate) fn take_place_of(&mut self, other: &Self) -> Outcome {
        let (address, _) = other.server.as_ref().context("it was never served")?;
        self.server = Some((*address, tokio::spawn(async {})));
        Ok(())
    }

    /// The same cluster, for another user.
    pub(crate) fn as_user(&self, client: Client) -> Self {
        let (api, pki) = (self.api.clone(), Arc::clone(&self.pki));
        Self { name: self.name.clone(), client, api, pki, server: None }
    }

    /// The same cluster, for a user of this name.
    pub(crate) fn used_by(&self, name: &str) -> Self {
        let user = User::authenticated(name, []);
        self.as_user(Client::new(self.api.service(user), "default"))
    }

    /// As the hub itself.
    fn as_hub(&self) -> Client {
        let user = User::authenticated(ITSELF, [MASTERS.to_owned()]);
        Client::new(self.api.service(user), "default")
    }

    /// Takes the author's stamp off, as if the object were older than stamps.
    pub(crate) async fn unstamp(&self, what: &Value) -> Outcome {
        let older = self.as_user(self.as_hub());
        let patched =
            older.merge(what, json!({"metadata": {"annotations": {annotation::AUTHOR: null}}})).await?;
        ensure!(patched["metadata"]["annotations"][annotation::AUTHOR].is_null(), "{patched:#}");
        Ok(())
    }

    /// Changes an object that is there.
    pub(crate) async fn merge(&self, what: &Value, patch: Value) -> anyhow::Result<Value> {
        let name = what["metadata"]["name"].as_str().context("no name")?;
        let done = self.api(what).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(serde_json::to_value(done)?)
    }

    /// How its administrator reaches it.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        let (address, _) = self.server.as_ref().context("it is not served")?;
        let text = self.pki.kubeconfig(&format!("https://{address}"));
        let read = kube::config::Kubeconfig::from_yaml(&text)?;
        Ok(kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default()).await?)
    }

    /// No client reaches it any more.
    pub(crate) fn cut(&self) {
        if let Some((_, task)) = &self.server {
            task.abort();
        }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap_or_default());
        let mut resource = ApiResource::from_gvk(&gvk);
        match gvk.kind.as_str() {
            "EndpointSlice" => resource.plural = "endpointslices".to_owned(),
            "SharingPolicy" => resource.plural = "sharingpolicies".to_owned(),
            _ => {}
        }
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    pub(crate) async fn apply(&self, object: Value) -> anyhow::Result<Value> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let params = PatchParams::apply("user").force();
        let applied = self.api(&object).patch(name, &params, &Patch::Apply(&object)).await?;
        Ok(serde_json::to_value(applied)?)
    }

    /// Sets an annotation of an object that is there.
    pub(crate) async fn annotate(&self, what: &Value, key: &str, text: &str) -> Outcome {
        let name = what["metadata"]["name"].as_str().context("no name")?;
        let patch = json!({"metadata": {"annotations": {key: text}}});
        self.api(what).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn create(&self, object: Value) -> anyhow::Result<Value> {
        let body = serde_json::from_value(object.clone())?;
        let made = self.api(&object).create(&PostParams::default(), &body).await?;
        Ok(serde_json::to_value(made)?)
    }

    pub(crate) async fn delete(&self, what: &Value) -> Outcome {
        let name = what["metadata"]["name"].as_str().context("no name")?;
        self.api(what).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn get(&self, what: &Value) -> anyhow::Result<Value> {
        let name = what["metadata"]["name"].as_str().context("no name")?;
        Ok(self.api(what).get_opt(name).await?.map(serde_json::to_value).transpose()?.unwrap_or_default())
    }

    pub(crate) async fn list(&self, what: &Value, labels: &str) -> anyhow::Result<Vec<DynamicObject>> {
        Ok(self.api(what).list(&ListParams::default().labels(labels)).await?.items)
    }

    /// Waits until an object is so.
    pub(crate) async fn becomes(
        &self,
        what: &Value,
        story: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(what).await?;
            if is(&found) {
                return Ok(found);
            }
            ensure!(
                tokio::time::Instant::now() < give_up,
                "{story} did not happen in {}; it is {found:#}",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The object as it would be if it were applied; nothing is.
    pub(crate) async fn would_apply(&self, object: &Value) -> anyhow::Result<Value> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let params = PatchParams { dry_run: true, ..PatchParams::apply("user").force() };
        let namespace = object["metadata"]["namespace"].as_str();
        // An object of a namespace that is not there yet can't be tried.
        if let Some(namespace) = namespace {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            if self.get(&namespace).await?.is_null() {
                anyhow::bail!("there is no such namespace");
            }
        }
        let applied = self.api(object).patch(name, &params, &Patch::Apply(object)).await?;
        Ok(serde_json::to_value(applied)?)
    }

    /// The slices of a Service that are not the hub's.
    pub(crate) async fn slices_of(&self, service: &Value) -> anyhow::Result<Vec<Value>> {
        let (namespace, name) = (&service["metadata"]["namespace"], &service["metadata"]["name"]);
        let kind = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"namespace": namespace}});
        let labels =
            format!("kubernetes.io/service-name={},!atoll.dev/hub", name.as_str().unwrap_or_default());
        let found = self.list(&kind, &labels).await?;
        let mut slices = found.into_iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        for slice in &mut slices {
            slice["apiVersion"] = kind["apiVersion"].clone();
            slice["kind"] = kind["kind"].clone();
        }
        Ok(slices)
    }

    /// What is there of the Service that an object is, exports, or is a slice of; or the object itself in the hub.
    pub(crate) async fn belongs_to(&self, object: &Value) -> anyhow::Result<Vec<Value>> {
        let namespace = &object["metadata"]["namespace"];
        let name = match object["kind"].as_str() {
            Some("Service" | "ServiceExport") => &object["metadata"]["name"],
            Some("EndpointSlice") => &object["metadata"]["labels"]["kubernetes.io/service-name"],
            Some("SharingPolicy") => {
                let there = self.get(object).await?;
                return Ok(if there.is_null() { Vec::new() } else { vec![there] });
            }
            _ => return Ok(Vec::new()),
        };
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}});
        let mut all = self.slices_of(&service).await?;
        all.extend(Some(self.get(&service).await?).filter(|service| !service.is_null()));
        Ok(all)
    }

    /// The slices that were dispatched for a Service: names, and addresses together.
    pub(crate) async fn dispatched(&self, service: &str) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let kind = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"namespace": "shop"}});
        let labels = format!(
            "kubernetes.io/service-name={service},endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io"
        );
        let slices = self.list(&kind, &labels).await?;
        let mut names: Vec<String> = slices.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let endpoints =
            slices.iter().flat_map(|slice| slice.data["endpoints"].as_array().cloned().unwrap_or_default());
        let mut addresses: Vec<String> =
            endpoints.filter_map(|one| Some(one["addresses"][0].as_str()?.to_owned())).collect();
        addresses.sort();
        Ok((names, addresses))
    }

    pub(crate) async fn reaches(&self, service: &str, want: &[&str]) -> Outcome {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let (names, addresses) = self.dispatched(service).await?;
            if addresses == want {
                return Ok(());
            }
            ensure!(
                tokio::time::Instant::now() < give_up,
                "{} has {addresses:?} in {names:?} and should have {want:?}",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// As a hub's own API does it.
fn stamping() -> Stamping {
    let resources = kind::STAMPED.map(|(group, plural)| (group.to_owned(), plural.to_owned()));
    Stamping {
        annotation: annotation::AUTHOR.to_owned(),
        resources: resources.into(),
        controllers: vec![ITSELF.to_owned()],
    }
}

type Running = JoinHandle<Result<(), atoll_hub::HubError>>;

/// A hub with its members.
pub(crate) struct World {
    pub(crate) hub: Cluster,
    pub(crate) members: Vec<Cluster>,
    running: Option<(oneshot::Sender<()>, Running)>,
    /// Where the hub is asked.
    pub(crate) questions: Questions,
    /// Who makes load balancers, from the next start of the hub.
    pub(crate) balancing: Balancing,
    /// Whether members that join from here on are asked about authors.
    pub(crate) check_authors: bool,
}

impl World {
    pub(crate) async fn start(members: usize) -> anyhow::Result<Self> {
        Self::balanced_by(Balancing::BuiltIn(Pool::default()), members).await
    }

    pub(crate) async fn balanced_by(balancing: Balancing, members: usize) -> anyhow::Result<Self> {
        let hub = Cluster::start("hub").await?;
        let mut world = Self {
            hub,
            members: Vec::new(),
            running: None,
            questions: Questions::default(),
            balancing,
            check_authors: false,
        };
        world.run();
        for number in 1..=members {
            world.join(&format!("member{number}")).await?;
        }
        world.serves_its_kinds().await?;
        Ok(world)
    }

    /// A member by its number, or the hub.
    pub(crate) fn at(&self, member: Option<usize>) -> &Cluster {
        member.map_or(&self.hub, |number| &self.members[number])
    }

    /// The hub has installed its kinds, and its API serves them.
    async fn serves_its_kinds(&self) -> Outcome {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        for crd in crds::of_hub() {
            let (group, names) = (&crd.spec.group, &crd.spec.names);
            for version in crd.spec.versions.iter().filter(|version| version.served) {
                let gvk = GroupVersionKind::gvk(group, &version.name, &names.kind);
                let resource = ApiResource::from_gvk_with_plural(&gvk, &names.plural);
                let api = Api::<DynamicObject>::all_with(self.hub.client.clone(), &resource);
                while let Err(error) = api.list(&ListParams::default()).await {
                    ensure!(tokio::time::Instant::now() < give_up, "no {}: {error:#}", names.plural);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        Ok(())
    }

    /// Starts the hub.
    pub(crate) fn run(&mut self) {
        let (stop, stopped) = oneshot::channel();
        let api = atoll_hub::connect::Api::within(self.hub.as_hub());
        let options = Options {
            lease_time: Duration::from_secs(2),
            balancing: self.balancing.clone(),
            questions: self.questions.clone(),
            propagation: atoll_hub::options::Propagation { ask_again: ASK_AGAIN, ..Default::default() },
            ..Options::new("hub-0")
        };
        let hub = Box::pin(atoll_hub::run(api, options, async { drop(stopped.await) }));
        self.running = Some((stop, tokio::spawn(hub)));
    }

    /// Stops the hub.
    pub(crate) async fn halt(&mut self) -> Outcome {
        if let Some((stop, task)) = self.running.take() {
            let _ = stop.send(());
            task.await??;
        }
        Ok(())
    }

    /// Adds a member, with namespace `shop`, to which policies may bring everything.
    pub(crate) async fn join(&mut self, name: &str) -> Outcome {
        self.join_with(name, Propagation::Everything).await
    }

    /// Adds a member to which policies may bring this much.
    pub(crate) async fn join_with(&mut self, name: &str, propagation: Propagation) -> Outcome {
        let mut member = Cluster::start(name).await?;
        member.serve().await?;
        member.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
        self.admit(&member, propagation).await?;
        self.members.push(member);
        Ok(())
    }

    /// Joins a cluster, or joins it again.
    pub(crate) async fn admit(
        &self,
        member: &Cluster,
        propagation: Propagation,
    ) -> anyhow::Result<atoll_hub::join::Joined> {
        let request = Request {
            name: member.name.clone(),
            namespace: HUB.to_owned(),
            clusterset: None,
            declared: Networks::default(),
            endpoints: Ranges::default(),
            allow_overlap: true,
            api_endpoint: None,
            place: Location::default(),
            propagation,
            check_authors: self.check_authors,
            allow_insecure: false,
            token_lifetime: TOKEN_LIFETIME,
            system_namespaces: Vec::new(),
        };
        let joining = atoll_hub::join::join(
            self.hub.client.clone(),
            member.config().await?,
            &request,
            std::future::pending(),
        );
        Box::pin(joining).await.with_context(|| format!("{} can't join", member.name))
    }
}
