//! `atoll cluster`: what a person says of a member, in its `Cluster` of the hub's API.

mod label;
mod taint;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::clusters::Clusters;
use crate::cli::HubApi;
use crate::failure::Failure;
use crate::objects::rest::{Form, Rest};
use crate::objects::{hide_managers, text};
use crate::output::Format;

/// How often a change is tried that others come before.
const TRIES: usize = 5;

/// Label and taint members, so that policies choose them or keep away.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll cluster list
  atoll cluster label member1 tier=gold
  atoll cluster taint member1 maintenance:NoExecute      everything that does not tolerate it leaves
  atoll cluster taint member1 maintenance:NoExecute-     and may come back")]
pub(crate) struct Cluster {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Show the members; the same as `atoll clusters`.
    #[command(visible_alias = "ls")]
    List(Clusters),
    /// Set or take off labels, which policies select by.
    Label(label::Label),
    /// Set or take off taints, which keep away what does not tolerate them.
    Taint(taint::Taint),
}

impl Cluster {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::List(clusters) => clusters.run().await,
            What::Label(label) => label.run().await,
            What::Taint(taint) => taint.run().await,
        }
    }
}

/// What label and taint have in common.
#[derive(Args)]
struct Change {
    #[command(flatten)]
    hub: HubApi,
    /// Replace what is there with another value.
    #[arg(long)]
    overwrite: bool,
    /// Let the hub's API check and answer, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to print what it is then.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Change {
    /// Reads a member, changes what `change` says by a merge patch, and prints what it is then. What somebody else changed meanwhile
    /// is read again, and not lost.
    async fn make(
        &self,
        name: &str,
        done: &str,
        change: impl Fn(&Value) -> Result<Option<Value>, Failure>,
    ) -> anyhow::Result<()> {
        let rest = Rest::new(self.hub.config().await?)?;
        let path =
            format!("/apis/cluster.karmada.io/v1alpha1/clusters/{}", crate::objects::catalog::escaped(name));
        let what = format!("cannot change the member `{name}`");
        let failed = |error: &kube::Error| match error {
            kube::Error::Api(status) if status.code == 404 => {
                Failure::request(&what, error).with_hint("`atoll clusters` shows the members")
            }
            _ => Failure::request(&what, error),
        };
        for tries in 1.. {
            let before = rest.get(&path, Form::Objects).await.map_err(|error| failed(&error))?;
            let Some(mut patch) = change(&before)? else {
                return self.print(name, "unchanged", before);
            };
            patch["metadata"]["resourceVersion"] = text(&before, "/metadata/resourceVersion").into();
            match rest.merge(&path, &patch, self.dry_run).await {
                Ok(after) => return self.print(name, done, after),
                Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => {}
                Err(error) => return Err(failed(&error).into()),
            }
        }
        Ok(())
    }

    fn print(&self, name: &str, done: &str, mut after: Value) -> anyhow::Result<()> {
        hide_managers(&mut after);
        let remark = if self.dry_run { " (server dry run)" } else { "" };
        self.output.print(|| format!("cluster/{name} {done}{remark}\n"), &after)
    }
}

/// A key, or why it is none.
fn key(word: &str, key: &str) -> Result<String, Failure> {
    match atoll_apimachinery::names::qualified(key).first() {
        None => Ok(key.to_owned()),
        Some(why) => Err(bad(word, why)),
    }
}

/// A value, or why it is none.
fn value(word: &str, value: &str) -> Result<String, Failure> {
    match atoll_apimachinery::names::label_value(value).first() {
        None => Ok(value.to_owned()),
        Some(why) => Err(bad(word, why)),
    }
}

fn bad(word: &str, why: &str) -> Failure {
    Failure::usage(
        &format!("`{word}` can't be used: {why}"),
        "keys are like tier or example.com/tier, values like gold",
    )
}
