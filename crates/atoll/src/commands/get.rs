//! `atoll get`: displays objects.

use std::collections::BTreeSet;

use atoll_api::names::annotation;
use clap::{Args, ValueEnum};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::context::Access;
use crate::failure::{self, Failure};
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::table::{TableOptions, TablePrinter};
use crate::objects::targets::{self, Target};
use crate::objects::{conditions_table, hide_managers, text};
use crate::output;

/// Display one or many objects.
///
/// Like `kubectl get`, for one or several clusters.
#[derive(Args)]
#[command(after_help = "Examples:
  # List all pods
  atoll get pods -A

  # List objects of a member
  atoll get -C member2 serviceimports,services

  # List objects of two members in one table
  atoll get -C member1,member2 deployments

  # Show the conditions of an export, with their messages
  atoll get serviceexport serve -o conditions

  # Print an object as YAML
  atoll get deployment serve -o yaml

  # Watch changes
  atoll get endpointslices -l kubernetes.io/service-name=serve --watch

With -C, atoll reads the hub's credentials for the member from the hub and uses
them. You need permission to read that Secret, and you see what the hub may see
in the member: see `atoll join --allow-propagation`.")]
pub(crate) struct Get {
    /// What to display: `KIND[,KIND] [NAME…]`, or `KIND/NAME…`.
    #[arg(required = true, value_name = "KIND")]
    what: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// Members, reached with the hub's credentials; or clusters of `atoll up`, such as hub or member1; or `all` members. Comma-separated.
    #[arg(
        short = 'C',
        long = "cluster",
        visible_alias = "clusters",
        value_name = "NAME",
        value_delimiter = ','
    )]
    clusters: Vec<String>,
    /// List objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Label selector, such as app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    output: Format,
    /// After listing, watch for changes.
    #[arg(short, long)]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Table.
    Table,
    /// Table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names, such as `deployment.apps/serve`.
    Name,
    /// Status conditions, with reasons and messages.
    Conditions,
}

impl Format {
    fn form(self) -> Form {
        match self {
            Self::Table | Self::Wide => Form::Table,
            Self::Json | Self::Yaml | Self::Name | Self::Conditions => Form::Objects,
        }
    }
}

/// In place of names: all members.
const ALL: &str = "all";

/// What a cluster answered.
struct Found {
    /// Its name, if several were asked.
    cluster: Option<String>,
    target: Target,
    value: Value,
}

impl Found {
    /// `deployment.apps/serve`, with its cluster before it if several were asked.
    fn name(&self, object: &Value) -> String {
        let name = subject(&self.target.resource, text(object, "/metadata/name"));
        self.cluster.as_ref().map_or_else(|| name.clone(), |cluster| format!("{cluster} {name}"))
    }
}

/// What was found in a cluster, and what was not.
struct Answer {
    found: Vec<Found>,
    failures: Vec<Failure>,
    namespace: String,
}

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut clusters = self.clusters.clone();
        if clusters.iter().any(|name| name == ALL) {
            clusters = self.access.members().await?;
        }
        let mut seen = BTreeSet::new();
        clusters.retain(|name| seen.insert(name.clone()));
        if let ([] | [_], true) = (clusters.as_slice(), self.watch) {
            return self.follow(clusters.first().map(String::as_str)).await;
        }
        if self.watch {
            let hint = "give one cluster with -C";
            return Err(Failure::usage("only one cluster can be watched", hint).into());
        }
        if let [] | [_] = clusters.as_slice() {
            let answer = self.ask(clusters.first().map(String::as_str), None).await?;
            self.print(&answer)?;
            return failure::report_all(answer.failures);
        }
        let asked = join_all(clusters.iter().map(|name| self.ask(Some(name), Some(name)))).await;
        let mut all = Answer { found: Vec::new(), failures: Vec::new(), namespace: String::new() };
        for (name, answer) in clusters.iter().zip(asked) {
            match answer {
                Ok(answer) => {
                    all.found.extend(answer.found);
                    all.failures.extend(answer.failures.into_iter().map(|failure| failure.within(name)));
                    all.namespace = answer.namespace;
                }
                Err(failure) => all.failures.push(failure.within(name)),
            }
        }
        // One kind after the other, and in it one cluster after the other.
        let mut kinds: Vec<String> = Vec::new();
        for found in &all.found {
            let kind = found.target.resource.group_resource();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        all.found.sort_by_key(|found| {
            kinds.iter().position(|kind| *kind == found.target.resource.group_resource())
        });
        self.print(&all)?;
        failure::report_all(all.failures)
    }

    /// Connects to a cluster, and reads what is asked of it.
    async fn open(&self, cluster: Option<&str>) -> Result<(Rest, Vec<Target>), Failure> {
        let mut reached = self.access.cluster(cluster).await?;
        if self.watch {
            // Nothing may happen for long.
            reached.config.read_timeout = None;
        }
        let rest = Rest::of(reached)?;
        let catalog = rest.catalog().await?;
        let targets = targets::read(&self.what, &catalog)?;
        let named = targets.iter().any(|target| target.name.is_some());
        if named && (self.all_namespaces || self.selector.is_some()) {
            let hint = "give either a name, or --all-namespaces or --selector";
            let what = "a name cannot be combined with --all-namespaces or --selector";
            return Err(Failure::usage(what, hint));
        }
        Ok((rest, targets))
    }

    /// Asks one cluster.
    async fn ask(&self, cluster: Option<&str>, shown_as: Option<&str>) -> Result<Answer, Failure> {
        let (rest, targets) = self.open(cluster).await?;
        let mut answer =
            Answer { found: Vec::new(), failures: Vec::new(), namespace: rest.namespace.clone() };
        for target in targets {
            match rest.get(&self.path(&rest, &target), self.output.form()).await {
                Ok(value) => {
                    let cluster = shown_as.map(str::to_owned);
                    answer.found.push(Found { cluster, target, value });
                }
                Err(error) => {
                    let what = target.name.as_deref().map_or_else(
                        || format!("cannot list {}", target.resource.plural),
                        |name| format!("cannot get {}", subject(&target.resource, name)),
                    );
                    answer.failures.push(rest.failure(&what, &error, &target.resource.group_resource()));
                }
            }
        }
        Ok(answer)
    }

    fn path(&self, rest: &Rest, target: &Target) -> String {
        let path = match &target.name {
            Some(name) => return target.resource.object(&rest.namespace, name),
            None => target.resource.collection((!self.all_namespaces).then_some(&rest.namespace)),
        };
        with_query(&path, &[("labelSelector", self.selector.as_deref().unwrap_or_default())])
    }

    fn table_options(&self, target: &Target, several: bool) -> TableOptions {
        TableOptions {
            wide: self.output == Format::Wide,
            clusters: false,
            namespaces: self.all_namespaces && target.resource.namespaced,
            prefix: if several { format!("{}/", target.resource.label()) } else { String::new() },
        }
    }

    fn print(&self, Answer { found, failures, namespace }: &Answer) -> anyhow::Result<()> {
        let complete = failures.is_empty();
        let nothing = || {
            let anywhere = self.all_namespaces || found.iter().all(|found| !found.target.resource.namespaced);
            if anywhere {
                "No resources found".to_owned()
            } else {
                format!("No resources found in {namespace} namespace.")
            }
        };
        match self.output {
            Format::Table | Format::Wide => {
                let text = self.tables(found);
                if text.is_empty() && complete {
                    eprintln!("{}", nothing());
                }
                output::text(&text)
            }
            Format::Name => {
                let lines =
                    objects(found).into_iter().map(|(found, object)| format!("{}\n", found.name(&object)));
                output::text(&lines.collect::<String>())
            }
            Format::Conditions => {
                let all: Vec<String> =
                    objects(found).iter().map(|(found, object)| conditions(found, object)).collect();
                output::text(&all.join("\n"))
            }
            Format::Json | Format::Yaml => {
                let mut all: Vec<Value> = objects(found).into_iter().map(|(_, object)| object).collect();
                let alone = matches!(found.as_slice(), [Found { cluster: None, target, .. }] if target.name.is_some());
                let shown = match all.pop() {
                    Some(only) if alone => only,
                    last => {
                        all.extend(last);
                        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": all})
                    }
                };
                if complete || !found.is_empty() { self.document(&shown) } else { Ok(()) }
            }
        }
    }

    fn document(&self, value: &Value) -> anyhow::Result<()> {
        if self.output == Format::Yaml { output::yaml(value) } else { output::json(value) }
    }

    /// A table for each kind, with an empty line in between.
    fn tables(&self, found: &[Found]) -> String {
        let mut kinds: Vec<(&Found, Value)> = Vec::new();
        for one in found {
            let mut table = one.value.clone();
            if let (Some(cluster), Some(rows)) = (&one.cluster, table["rows"].as_array_mut()) {
                rows.iter_mut().for_each(|row| row["cluster"] = cluster.as_str().into());
            }
            match kinds.last_mut() {
                // Several objects of a kind stand in one table; clusters of other versions may have other columns.
                Some((last, all))
                    if last.target.resource.group_resource() == one.target.resource.group_resource()
                        && titles(all) == titles(&table) =>
                {
                    if let (Some(rows), Some(more)) = (all["rows"].as_array_mut(), table["rows"].as_array()) {
                        rows.extend(more.iter().cloned());
                    }
                }
                _ => kinds.push((one, table)),
            }
        }
        let several = kinds.iter().any(|(one, _)| {
            kinds.first().is_some_and(|(first, _)| {
                one.target.resource.group_resource() != first.target.resource.group_resource()
            })
        });
        let tables = kinds.iter().map(|(one, table)| {
            let options =
                TableOptions { clusters: one.cluster.is_some(), ..self.table_options(&one.target, several) };
            TablePrinter::new(options).print(table)
        });
        tables.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Shows what there is, then what changes.
    async fn follow(&self, cluster: Option<&str>) -> anyhow::Result<()> {
        let (rest, targets) = self.open(cluster).await?;
        let [target] = targets.as_slice() else {
            return Err(Failure::usage(
                "only one kind or object can be watched",
                "give one kind, or one object",
            )
            .into());
        };
        let what = format!("cannot watch {}", target.resource.plural);
        let failed = |error: &kube::Error| rest.failure(&what, error, &target.resource.group_resource());
        let form = self.output.form();
        let collection = target.resource.collection((!self.all_namespaces).then_some(&rest.namespace));
        let field = target.name.as_ref().map(|name| format!("metadata.name={name}")).unwrap_or_default();
        let selector = self.selector.as_deref().unwrap_or_default();
        let path = with_query(&collection, &[("labelSelector", selector), ("fieldSelector", &field)]);
        if target.name.is_some() {
            // If the named object does not exist, this fails instead of waiting for it.
            rest.get(&self.path(&rest, target), Form::Objects).await.map_err(|error| failed(&error))?;
        }
        let list = rest.get(&path, form).await.map_err(|error| failed(&error))?;
        let mut printer = TablePrinter::new(self.table_options(target, false));
        let mut show = |value: Value| -> anyhow::Result<bool> {
            if form == Form::Table {
                return output::write_text(&printer.print(&value));
            }
            for (found, object) in objects(&[Found { cluster: None, target: target.clone(), value }]) {
                match self.output {
                    Format::Name => {
                        if !output::write_text(&format!("{}\n", found.name(&object)))? {
                            return Ok(false);
                        }
                    }
                    Format::Yaml => {
                        output::text("---\n")?;
                        self.document(&object)?;
                    }
                    Format::Conditions => output::text(&conditions(found, &object))?,
                    Format::Json | Format::Table | Format::Wide => self.document(&object)?,
                }
            }
            Ok(true)
        };
        let revision = text(&list, "/metadata/resourceVersion").to_owned();
        if !show(list)? {
            return Ok(());
        }
        rest.watch(&path, form, &revision, show).await
    }
}

/// The names of a table's columns.
fn titles(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    columns.map(|column| text(column, "/name")).collect()
}

/// The conditions of one object: name, then a line each.
fn conditions(found: &Found, object: &Value) -> String {
    let name = found.name(object);
    match conditions_table(object) {
        Some(table) => format!("{name}\n{table}"),
        None => format!("{name}: no conditions\n"),
    }
}

/// The objects of answers, one by one, each with its type.
fn objects(found: &[Found]) -> Vec<(&Found, Value)> {
    let mut all = Vec::new();
    for one in found {
        let Found { cluster, target, value } = one;
        let list = value.get("items").and_then(Value::as_array).filter(|_| target.name.is_none());
        for object in list.map_or_else(|| vec![value.clone()], Clone::clone) {
            let mut object = object;
            object["apiVersion"] = target.resource.api_version().into();
            object["kind"] = target.resource.kind.as_str().into();
            hide_managers(&mut object);
            if let Some(cluster) = cluster {
                object["metadata"]["annotations"][annotation::FROM_CLUSTER] = cluster.as_str().into();
            }
            all.push((one, object));
        }
    }
    all
}
