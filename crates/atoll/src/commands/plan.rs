//! `atoll plan`: what would change in which cluster, if objects were applied or deleted, or a member left. Nothing is written.

mod gather;
mod text;

use std::path::PathBuf;

use atoll_api::explain::plan::{Action, PlanAnswer, PlanRequest};
use atoll_api::names::kind::explain;
use clap::Args;
use http::Request;
use http::header::CONTENT_TYPE;

use crate::context::Access;
use crate::failure::{Failure, report_all};
use crate::objects::manifests;
use crate::objects::rest::Rest;
use crate::output::Format;

/// The exit code if something would change.
const CHANGES: u8 = 3;

/// Show what applying or deleting objects would change, in every cluster.
///
/// The leader of the hub computes it on a copy of its state, so what it shows is what would be done. Nothing is written.
/// Objects are tried in the cluster first (server-side dry run), so that defaults and refusals of its API count.
#[derive(Args)]
#[command(after_help = "Examples:
  # Show what these objects would change if they were applied in a member
  atoll plan --in paris -f web.yaml

  # Show what a policy would change if it were applied in the hub
  atoll plan -f policy.yaml

  # Show what would go if the objects of a directory were deleted
  atoll plan --in paris --delete -f manifests/

  # Show what would change if a member were unjoined
  atoll plan --without paris

Exit codes: 0 nothing would change, 1 failure, or an object that would be
refused, 2 usage error, 3 something would change.")]
pub(crate) struct Plan {
    /// File, directory of .yaml, .yml and .json files, or - for stdin. Can be repeated.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required_unless_present = "without")]
    files: Vec<PathBuf>,
    /// Member in which the objects are applied or deleted [default: the hub].
    #[arg(long = "in", value_name = "CLUSTER", requires = "files")]
    within: Option<String>,
    /// Delete the objects instead of applying them.
    #[arg(long, requires = "files")]
    delete: bool,
    /// Member that is unjoined, as by `atoll unjoin`. (One that is only lost keeps its endpoints, unless the liveness policy of an
    /// export says otherwise.) Can be repeated.
    #[arg(long, value_name = "CLUSTER")]
    without: Vec<String>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

impl Plan {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let manifests = if self.files.is_empty() { Vec::new() } else { manifests::read(&self.files)? };
        let hub = Rest::new(self.access.hub().await?)?;
        let mut request = PlanRequest {
            api_version: Some(format!("{}/{}", explain::GROUP, explain::VERSION)),
            kind: Some(explain::PLAN.to_owned()),
            metadata: None,
            changes: Vec::new(),
            current: Vec::new(),
            without: self.without.clone(),
        };
        let mut refused = Vec::new();
        if !manifests.is_empty() {
            let place = match &self.within {
                Some(name) => Rest::of(self.access.cluster(Some(name)).await?)?,
                None => hub.clone(),
            };
            let action = if self.delete { Action::Delete } else { Action::Apply };
            let asked = self.access.namespace.as_deref();
            refused = gather::gather(&place, self.within.as_deref(), asked, action, &manifests, &mut request)
                .await?;
        }
        let answer = ask(&hub, &request).await?;
        self.output.print(|| text::render(&answer), &answer)?;
        report_all(refused)?;
        if answer.summary.changes() { Err(Failure::silent(CHANGES)) } else { Ok(()) }
    }
}

/// Asks the leader, through the hub's API.
async fn ask(hub: &Rest, request: &PlanRequest) -> Result<PlanAnswer, Failure> {
    let path = format!("/apis/{}/{}/{}", explain::GROUP, explain::VERSION, explain::PLANS);
    let what = "cannot plan";
    let failed = |error: kube::Error| {
        let failure = hub.failure(what, &error, explain::PLANS);
        match &error {
            kube::Error::Api(status) if status.code == 404 => failure.with_hint(
                "this API has no running hub of Atoll behind it that answers; check --kubeconfig and --context, and that the \
                 hub runs and is not older than this command",
            ),
            kube::Error::Api(status) if status.code == 403 => failure.with_hint(&format!(
                "the right to create {}.{} is needed; ask the hub's operator",
                explain::PLANS,
                explain::GROUP
            )),
            _ => failure,
        }
    };
    let body = serde_json::to_vec(request).map_err(|error| failed(kube::Error::SerdeError(error)))?;
    let asked = Request::post(path).header(CONTENT_TYPE, "application/json").body(body);
    let asked = asked.map_err(|error| failed(kube::Error::HttpError(error)))?;
    hub.client.request(asked).await.map_err(failed)
}
