//! `atoll delete`: takes objects away.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use kube::Error;
use serde_json::Value;

use super::apply::{Kinds, place};
use crate::cli::duration;
use crate::context::ClusterApi;
use crate::failure::{self, Failure};
use crate::objects::catalog::Resource;
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::{manifests, targets, text};
use crate::{output, patience};

/// How often an object is looked for that is on its way out.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Take objects away: those in files, or those that are named.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll delete -C member1 -f examples/serve.yaml
  atoll delete serviceexport serve
  atoll delete pods -l app=serve --wait=false")]
pub(crate) struct Delete {
    /// Kinds and names: KIND NAME…, KIND/NAME…, or KIND with -l or --all.
    #[arg(value_name = "KIND", required_unless_present = "files", conflicts_with = "files")]
    what: Vec<String>,
    /// A file, a folder of .yaml, .yml and .json files, or - for stdin.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Those of the kind that have these labels.
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "files")]
    selector: Option<String>,
    /// All of the kind, in the namespace.
    #[arg(long, conflicts_with_all = ["files", "selector"])]
    all: bool,
    /// It is no failure if there is nothing to delete.
    #[arg(long)]
    ignore_not_found: bool,
    /// Wait until they are gone.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait: bool,
    /// How long each may take to go.
    #[arg(long, default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

/// An object to delete.
struct Doomed {
    resource: Resource,
    namespace: String,
    name: String,
}

impl Delete {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let rest = Rest::of(self.cluster.reach().await?)?;
        let mut failures = Vec::new();
        for doomed in self.doomed(&rest, &mut failures).await? {
            let what = format!("cannot delete {}", subject(&doomed.resource, &doomed.name));
            let path = doomed.resource.object(&doomed.namespace, &doomed.name);
            match rest.delete(&path).await {
                Ok(answer) => {
                    let place = match doomed.resource.namespaced {
                        true => format!(" from {} namespace", doomed.namespace),
                        false => String::new(),
                    };
                    output::text(&format!(
                        "{} \"{}\" deleted{place}\n",
                        doomed.resource.label(),
                        doomed.name
                    ))?;
                    if self.wait
                        && let Err(failure) = self.gone(&rest, &path, &answer, &doomed).await
                    {
                        failures.push(failure);
                    }
                }
                Err(Error::Api(status)) if status.code == 404 && self.ignore_not_found => {}
                Err(error) => failures.push(rest.failure(&what, &error, &doomed.resource.right())),
            }
        }
        failure::last_of(failures)
    }

    async fn doomed(&self, rest: &Rest, failures: &mut Vec<Failure>) -> anyhow::Result<Vec<Doomed>> {
        let mut all = Vec::new();
        if !self.files.is_empty() {
            let manifests = manifests::read(&self.files)?;
            let mut kinds = Kinds::ask(rest.clone()).await?;
            for manifest in &manifests {
                match kinds.of(manifest).await {
                    Ok(resource) => {
                        let namespace =
                            place(&resource, manifest, self.cluster.access.namespace.as_deref(), rest)?;
                        let name = text(&manifest.object, "/metadata/name").to_owned();
                        all.push(Doomed { resource, namespace, name });
                    }
                    // What is of a kind that nobody serves is not there.
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
                    all.push(Doomed { namespace: rest.namespace.clone(), name: name.clone(), resource });
                }
                (Some(_), _) => {
                    let hint = "leave out either the name, or --selector and --all";
                    return Err(Failure::usage("an object with a name is one", hint).into());
                }
                (None, None) if !self.all => {
                    let what = format!("it is not said which {} are to be deleted", resource.plural);
                    return Err(Failure::usage(&what, "say their names, or -l LABELS, or --all").into());
                }
                (None, selector) => {
                    let query = [("labelSelector", selector.as_deref().unwrap_or_default())];
                    let path = with_query(&resource.collection(Some(&rest.namespace)), &query);
                    let list = rest.get(&path, Form::Objects).await;
                    let what = format!("cannot list {}", resource.plural);
                    let list = list.map_err(|error| rest.failure(&what, &error, &resource.right()))?;
                    for item in list["items"].as_array().into_iter().flatten() {
                        let name = text(item, "/metadata/name").to_owned();
                        all.push(Doomed {
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
    async fn gone(&self, rest: &Rest, path: &str, answer: &Value, doomed: &Doomed) -> Result<(), Failure> {
        let name = subject(&doomed.resource, &doomed.name);
        // The answer is the object on its way out, or a Status that knows its uid.
        let uid = [text(answer, "/metadata/uid"), text(answer, "/details/uid")].concat();
        let going = async {
            loop {
                match rest.find(path).await {
                    Ok(Some(found)) if uid.is_empty() || text(&found, "/metadata/uid") == uid => {}
                    Ok(_) => return Ok(()),
                    Err(error) => return Err(Failure::request(&format!("cannot look for {name}"), &error)),
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let waiting = format!("waiting until {name} is gone");
        let waited = tokio::time::timeout(self.timeout, patience::saying(&waiting, going)).await;
        waited.unwrap_or_else(|_| Err(Failure::still_there(&name, self.timeout)))
    }
}
