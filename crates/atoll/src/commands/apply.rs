//! `atoll apply`: applies objects from files, by server-side apply.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::Error;
use serde_json::Value;

use crate::context::ClusterApi;
use crate::failure::{self, Failure};
use crate::objects::catalog::{Catalog, Resource};
use crate::objects::manifests::{self, Manifest};
use crate::objects::rest::{Apply as How, Rest, subject};
use crate::objects::text;
use crate::output;

/// How long a kind may take to be served after its definition was applied.
const NEW_KIND_WITHIN: Duration = Duration::from_secs(10);

/// Apply objects from files, with server-side apply.
///
/// Objects that do not exist are created. Fields that differ are changed; all other fields are left alone.
#[derive(Args)]
#[command(after_help = "Examples:
  # Apply a file to a member
  atoll apply -C member1 -f examples/serve.yaml

  # Check all files of a directory, and change nothing
  atoll apply -f manifests/ --dry-run

  # Apply from stdin
  atoll crds | atoll apply -f -")]
pub(crate) struct Apply {
    /// File, directory of .yaml, .yml and .json files, or - for stdin. Can be repeated.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Submit a server-side request without persisting anything.
    #[arg(long, value_name = "server", num_args = 0..=1, require_equals = true, default_missing_value = "server", value_parser = ["server"])]
    dry_run: Option<String>,
    /// Take over fields that another field manager owns.
    #[arg(long)]
    force_conflicts: bool,
}

/// What applying an object came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Configured,
    Unchanged,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }

    fn of(before: Option<Value>, after: Value) -> Self {
        let shown = |mut object: Value| {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
                metadata.remove("resourceVersion");
            }
            object
        };
        match before.map(shown) {
            None => Self::Created,
            Some(before) if before == shown(after) => Self::Unchanged,
            Some(_) => Self::Configured,
        }
    }
}

impl Apply {
    /// Makes the objects of a text in a cluster, as they stand there, and says what became of each.
    pub(crate) async fn example(
        config: kube::Config,
        file: &str,
        content: &str,
        say: &dyn Fn(&str),
    ) -> Result<(), anyhow::Error> {
        let apply =
            Self { files: Vec::new(), cluster: ClusterApi::default(), dry_run: None, force_conflicts: true };
        let rest = Rest::new(config)?;
        let mut kinds = Kinds::discover(rest.clone()).await?;
        for manifest in manifests::objects(file, content)? {
            let (resource, outcome) = apply.one(&rest, &mut kinds, &manifest).await?;
            say(&format!(
                "{} {}",
                subject(&resource, text(&manifest.object, "/metadata/name")),
                outcome.word()
            ));
        }
        Ok(())
    }

    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let manifests = manifests::read(&self.files)?;
        let rest = Rest::of(self.cluster.reach().await?)?;
        let mut kinds = Kinds::discover(rest.clone()).await?;
        let remark = if self.dry_run.is_some() { " (server dry run)" } else { "" };
        let mut failures = Vec::new();
        for manifest in &manifests {
            match self.one(&rest, &mut kinds, manifest).await {
                Ok((resource, outcome)) => {
                    let name = subject(&resource, text(&manifest.object, "/metadata/name"));
                    output::text(&format!("{name} {}{remark}\n", outcome.word()))?;
                }
                Err(failure) => failures.push(failure),
            }
        }
        failure::report_all(failures)
    }

    async fn one(
        &self,
        rest: &Rest,
        kinds: &mut Kinds,
        manifest: &Manifest,
    ) -> Result<(Resource, Outcome), Failure> {
        let resource = kinds.of(manifest).await?;
        let (namespace, name) = (
            namespace_of(&resource, manifest, self.cluster.access.namespace.as_deref(), rest)?,
            text(&manifest.object, "/metadata/name"),
        );
        let path = resource.object(&namespace, name);
        let how = How { force: self.force_conflicts, dry_run: self.dry_run.is_some() };
        let what = format!("cannot apply {} ({})", subject(&resource, name), manifest.source);
        let before = rest
            .find(&path)
            .await
            .map_err(|error| rest.failure(&what, &error, &resource.group_resource()))?;
        let mut object = manifest.object.clone();
        if resource.namespaced {
            object["metadata"]["namespace"] = namespace.into();
        }
        let after = rest.apply(&path, &object, how).await;
        let after = after.map_err(|error| refused(rest, &resource, &what, &error))?;
        if resource.kind == "CustomResourceDefinition" && !how.dry_run {
            kinds.growing = true;
        }
        Ok((resource, Outcome::of(before, after)))
    }
}

fn refused(rest: &Rest, resource: &Resource, what: &str, error: &Error) -> Failure {
    let failure = rest.failure(what, error, &resource.group_resource());
    match error {
        Error::Api(status) if status.code == 409 && status.reason == "Conflict" => {
            failure.with_hint("use --force-conflicts to take over these fields")
        }
        _ => failure,
    }
}

/// The namespace that an object goes into.
pub(crate) fn namespace_of(
    resource: &Resource,
    manifest: &Manifest,
    asked: Option<&str>,
    rest: &Rest,
) -> Result<String, Failure> {
    let own = text(&manifest.object, "/metadata/namespace");
    match asked {
        _ if !resource.namespaced || own.is_empty() => Ok(rest.namespace.clone()),
        Some(asked) if asked != own => {
            let what = format!("{} has the namespace `{own}`, but --namespace is `{asked}`", manifest.source);
            Err(Failure::usage(&what, "remove --namespace, or metadata.namespace from the file"))
        }
        _ => Ok(own.to_owned()),
    }
}

/// The kinds of a cluster; new ones come while definitions are applied.
pub(crate) struct Kinds {
    rest: Rest,
    catalog: Catalog,
    /// A definition was applied: what is not served yet may be soon.
    pub(crate) growing: bool,
}

impl Kinds {
    pub(crate) async fn discover(rest: Rest) -> Result<Self, Failure> {
        let catalog = rest.catalog().await?;
        Ok(Self { rest, catalog, growing: false })
    }

    /// The resource of a kind, if it is served.
    pub(crate) fn known(&self, version: &str, kind: &str) -> Option<Resource> {
        self.catalog.of_kind(version, kind).cloned()
    }

    /// The resource of an object.
    pub(crate) async fn of(&mut self, manifest: &Manifest) -> Result<Resource, Failure> {
        let (version, kind) = (text(&manifest.object, "/apiVersion"), text(&manifest.object, "/kind"));
        let give_up = tokio::time::Instant::now() + NEW_KIND_WITHIN;
        loop {
            if let Some(resource) = self.catalog.of_kind(version, kind) {
                return Ok(resource.clone());
            }
            if !self.growing || tokio::time::Instant::now() > give_up {
                return Err(Failure::unknown_kind(&manifest.source.to_string(), version, kind));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.catalog = self.rest.catalog().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_unchanged_when_only_its_owners_differ() {
        let object = |revision: &str, value: i32| json!({"metadata": {"name": "a", "resourceVersion": revision, "managedFields": [revision]}, "data": value});
        assert_eq!(Outcome::of(None, object("1", 1)), Outcome::Created);
        assert_eq!(Outcome::of(Some(object("1", 1)), object("2", 1)), Outcome::Unchanged);
        assert_eq!(Outcome::of(Some(object("1", 1)), object("1", 2)), Outcome::Configured);
    }
}
