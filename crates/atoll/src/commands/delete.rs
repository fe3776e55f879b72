//! `atoll delete`: deletes objects.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use kube::Error;
use serde_json::Value;

use super::apply::{Kinds, namespace_of};
use crate::context::ClusterApi;
use crate::failure::{self, Failure};
use crate::objects::catalog::Resource;
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::{manifests, targets, text};
use crate::{output, progress};

/// How often the API is polled for an object that is being deleted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Delete objects by file, name or label.
#[derive(Args)]
#[command(after_help = "Examples:
  # Delete the objects of a file in a member
  atoll delete -C member1 -f examples/serve.yaml

  # Delete an object by name
  atoll delete serviceexport serve

  # Delete pods by label, without waiting
  atoll delete pods -l app=serve --wait=false")]
pub(crate) struct Delete {
    /// What to delete: `KIND NAME…`, `KIND/NAME…`, or `KIND` with -l or --all.
    #[arg(value_name = "KIND", required_unless_present = "files", conflicts_with = "files")]
    what: Vec<String>,
    /// File, directory of .yaml, .yml and .json files, or - for stdin. Can be repeated.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Label selector, such as app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "files")]
    selector: Option<String>,
    /// Delete all objects of the kind in the namespace.
    #[arg(long, conflicts_with_all = ["files", "selector"])]
    all: bool,
    /// Succeed if an object does not exist.
    #[arg(long)]
    ignore_not_found: bool,
    /// Wait until the objects are gone.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait: bool,
    /// How long to wait for each object.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = atoll_duration::parse)]
    timeout: Duration,
}

/// An object to delete.
struct Deletion {
    resource: Resource,
    namespace: String,
    name: String,
}

impl Delete {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let rest = Rest::of(self.cluster.reach().await?)?;
        let mut failures = Vec::new();
        for deletion in self.deletions(&rest, &mut failures).await? {
            let what = format!("cannot delete {}", subject(&deletion.resource, &deletion.name));
            let path = deletion.resource.object(&deletion.namespace, &deletion.name);
            match rest.delete(&path).await {
                Ok(answer) => {
                    let from = match deletion.resource.namespaced {
                        true => format!(" from {} namespace", deletion.namespace),
                        false => String::new(),
                    };
                    output::text(&format!(
                        "{} \"{}\" deleted{from}\n",
                        deletion.resource.label(),
                        deletion.name
                    ))?;
                    if self.wait
                        && let Err(failure) = self.wait_until_deleted(&rest, &path, &answer, &deletion).await
                    {
                        failures.push(failure);
                    }
                }
                Err(Error::Api(status)) if status.code == 404 && self.ignore_not_found => {}
                Err(error) => failures.push(rest.failure(&what, &error, &deletion.resource.group_resource())),
            }
        }
        failure::report_all(failures)
    }

    async fn deletions(&self, rest: &Rest, failures: &mut Vec<Failure>) -> anyhow::Result<Vec<Deletion>> {
        let mut all = Vec::new();
        if !self.files.is_empty() {
            let manifests = manifests::read(&self.files)?;
            let mut kinds = Kinds::discover(rest.clone()).await?;
            for manifest in &manifests {
                match kinds.of(manifest).await {
                    Ok(resource) => {
                        let namespace = namespace_of(
                            &resource,
                            manifest,
                            self.cluster.access.namespace.as_deref(),
                            rest,
                        )?;
                        let name = text(&manifest.object, "/metadata/name").to_owned();
                        all.push(Deletion { resource, namespace, name });
                    }
                    // An object of a kind that the API does not serve does not exist.
                    Err(_) if self.ignore_not_found => {}
                    Err(failure) => failures.push(failure),
                }
            }
            return Ok(all);
        }
        let catalog = rest.catalog().await?;
        for target in targets::read(&self.what, &catalog)? {
            let resource = target.resource;
            match (&target.name, &self.selector) {
                (Some(name), None) if !self.all => {
                    all.push(Deletion { namespace: rest.namespace.clone(), name: name.clone(), resource });
                }
                (Some(_), _) => {
                    let hint = "give either a name, or --selector or --all";
                    return Err(
                        Failure::usage("a name cannot be combined with --selector or --all", hint).into()
                    );
                }
                (None, None) if !self.all => {
                    let what = format!("no name or selector given for {}", resource.plural);
                    return Err(Failure::usage(&what, "give names, -l SELECTOR, or --all").into());
                }
                (None, selector) => {
                    let query = [("labelSelector", selector.as_deref().unwrap_or_default())];
                    let path = with_query(&resource.collection(Some(&rest.namespace)), &query);
                    let list = rest.get(&path, Form::Objects).await;
                    let what = format!("cannot list {}", resource.plural);
                    let list =
                        list.map_err(|error| rest.failure(&what, &error, &resource.group_resource()))?;
                    for item in list["items"].as_array().into_iter().flatten() {
                        let name = text(item, "/metadata/name").to_owned();
                        all.push(Deletion {
                            resource: resource.clone(),
                            namespace: rest.namespace.clone(),
                            name,
                        });
                    }
                }
            }
        }
        if all.is_empty() {
            eprintln!("No resources found");
        }
        Ok(all)
    }

    /// Waits until the object is gone, or another one has its name.
    async fn wait_until_deleted(
        &self,
        rest: &Rest,
        path: &str,
        answer: &Value,
        deletion: &Deletion,
    ) -> Result<(), Failure> {
        let name = subject(&deletion.resource, &deletion.name);
        // The answer is the object on its way out, or a Status that knows its uid.
        let uid = [text(answer, "/metadata/uid"), text(answer, "/details/uid")].concat();
        let going = async {
            loop {
                match rest.find(path).await {
                    Ok(Some(found)) if uid.is_empty() || text(&found, "/metadata/uid") == uid => {}
                    Ok(_) => return Ok(()),
                    Err(error) => return Err(Failure::request(&format!("cannot get {name}"), &error)),
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let waiting = format!("waiting for {name} to be deleted");
        let waited = tokio::time::timeout(self.timeout, progress::announce_if_slow(&waiting, going)).await;
        waited.unwrap_or_else(|_| Err(Failure::still_there(&name, self.timeout)))
    }
}
