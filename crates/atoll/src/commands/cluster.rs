//! `atoll cluster`: labels and taints of a member, in its `Cluster` of the hub's API; and its tokens.

mod label;
mod revoke;
mod taint;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::clusters::Clusters;
use crate::context::HubApi;
use crate::failure::Failure;
use crate::objects::rest::Form;
use crate::objects::{catalog, hide_managers, text};
use crate::output::Format;

/// How often a change is tried that others come before.
const TRIES: usize = 5;

/// Label and taint members, and revoke their tokens.
///
/// Policies select members by labels, and avoid members with taints that they do not tolerate.
#[derive(Args)]
#[command(after_help = "Examples:
  # Label a member
  atoll cluster label member1 tier=gold

  # Move away all copies that do not tolerate the taint
  atoll cluster taint member1 maintenance:NoExecute

  # Remove the taint
  atoll cluster taint member1 maintenance:NoExecute-")]
pub(crate) struct Cluster {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the members; the same as `atoll clusters`.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  # List the members
  atoll cluster list

  # Show regions, endpoints, and why a member is not ready
  atoll cluster list -o wide"
    )]
    List(Clusters),
    Label(label::Label),
    Taint(taint::Taint),
    Revoke(revoke::Revoke),
}

impl Cluster {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::List(clusters) => clusters.run().await,
            What::Label(label) => label.run().await,
            What::Taint(taint) => taint.run().await,
            What::Revoke(revoke) => revoke.run().await,
        }
    }
}

/// What label and taint have in common.
#[derive(Args)]
struct Change {
    #[command(flatten)]
    hub: HubApi,
    /// Replace existing values.
    #[arg(long)]
    overwrite: bool,
    /// Submit a server-side request without persisting anything.
    #[arg(long)]
    dry_run: bool,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Change {
    /// Reads a member, changes what `change` says by a merge patch, and prints what it is then. On a conflict it reads
    /// again, so that no other change is lost.
    async fn make(
        &self,
        name: &str,
        done: &str,
        change: impl Fn(&Value) -> Result<Option<Value>, Failure>,
    ) -> anyhow::Result<()> {
        let hub = self.hub.find().await?;
        let rest = hub.rest()?;
        let path = catalog::member(name);
        let what = format!("cannot update member `{name}`");
        let failed = |error: &kube::Error| match error {
            kube::Error::Api(status) if status.code == 404 => {
                hub.place.failure(&what, error).with_hint("list the members with `atoll clusters`")
            }
            _ => hub.place.failure(&what, error),
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
        &format!("invalid key or value in `{word}`: {why}"),
        "a key is like tier or example.com/tier, a value is like gold",
    )
}
