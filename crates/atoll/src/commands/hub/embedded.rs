//! The hub's own Kubernetes API: in this process, on one file.

use std::path::PathBuf;

use anyhow::Context;
use atoll_api::names::annotation;
use atoll_api::names::kind::STAMPED;
use atoll_hub::explain::Questions;
use atoll_kubeapi::Options;
use atoll_kubeapi::authn::{MASTERS, User};
use atoll_kubeapi::author::Stamping;
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::hosted::{HostOptions, Hosted};
use tokio::runtime::{Builder, Runtime};

/// Who the hub is on its own API.
const HUB: &str = "atoll-hub";

/// A running API. It ends with this value.
pub(crate) struct Embedded {
    hosted: Hosted,
    /// Requests from outside do not take turns with the hub's own work.
    _runtime: ApiRuntime,
}

/// A runtime that can be dropped in another one.
struct ApiRuntime(Option<Runtime>);

impl Drop for ApiRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Watches have no end of their own.
            runtime.shutdown_background();
        }
    }
}

impl Embedded {
    /// Starts the API of a data directory, which is made if it is not there.
    pub(crate) async fn start(
        host: &HostOptions<'_>,
        audit: Option<atoll_audit::Log>,
        keys: Keys,
        questions: Questions,
    ) -> anyhow::Result<Self> {
        // Each client takes one, and the API accepts some thousands.
        atoll_lb::allow_many_files();
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("api").enable_all().build()?;
        let runtime = ApiRuntime(Some(runtime));
        let (data_dir, address, mut names) = (host.data_dir.to_owned(), host.address, host.names.to_vec());
        names.extend(super::host());
        let start = async move {
            let host = HostOptions { data_dir: &data_dir, address, names: &names };
            Hosted::start(&host, options(questions).audit(audit).encryption(keys)).await
        };
        let spawned = runtime.0.as_ref().map(|runtime| runtime.spawn(start));
        let hosted = spawned.context("a runtime that was just made")?.await??;
        tracing::info!(url = hosted.url, kubeconfig = %hosted.kubeconfig.display(), "serving the hub's API");
        Ok(Self { hosted, _runtime: runtime })
    }

    /// The hub's way in: no socket, and nothing that it may not do.
    pub(crate) fn client(&self) -> kube::Client {
        client(&self.hosted)
    }
}

/// What the API of a hub does besides: policies say who wrote them, and the leader explains. The hub's own marks on policies are no
/// author's.
pub(crate) fn options(questions: Questions) -> Options {
    let resources = STAMPED.map(|(group, plural)| (group.to_owned(), plural.to_owned()));
    let explained = atoll_hub::explain::group(questions);
    Options::default().aggregated(explained).stamping(Stamping {
        annotation: annotation::AUTHOR.to_owned(),
        resources: resources.into(),
        controllers: vec![HUB.to_owned()],
    })
}

/// A way into a hub's API: no socket, and nothing that the hub may not do.
pub(crate) fn client(hosted: &Hosted) -> kube::Client {
    kube::Client::new(hosted.api.service(User::authenticated(HUB, [MASTERS.to_owned()])), "default")
}

/// The default data directory of a hub.
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".atoll"))
}
