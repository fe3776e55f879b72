//! `atoll get`: shows objects of any kind.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::context::Access;
use crate::failure::{self, Failure};
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::table::{Look, Printer};
use crate::objects::targets::{self, Target};
use crate::objects::{conditions_table, hide_managers, text};
use crate::output;

/// On an object of several clusters' lists: the cluster that it is of. Karmada's users know it.
const FROM_CLUSTER: &str = "resource.karmada.io/cached-from-cluster";

/// Show objects of any kind, as kubectl does.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll get pods -A
  atoll get -C member2 serviceimports,services
  atoll get -C member1,member2 deployments          side by side, with a column for the cluster
  atoll get deployment serve -o yaml
  atoll get serviceexport serve -o conditions      why it is as it is
  atoll get endpointslices -l kubernetes.io/service-name=serve --watch

With -C a member is reached with the credentials that the hub holds for it: who asks needs the right to read them, and sees what
the hub may see there (`atoll join --allow-propagation`).")]
pub(crate) struct Get {
    /// Kinds and names: `KIND[,KIND] [NAME…]`, or `KIND/NAME…`.
    #[arg(required = true, value_name = "KIND")]
    what: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// A member, reached with the hub's credentials; or a cluster of `atoll up`: hub, member1, … Several with commas.
    #[arg(
        short = 'C',
        long = "cluster",
        visible_alias = "clusters",
        value_name = "NAME",
        value_delimiter = ','
    )]
    clusters: Vec<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only those with these labels: app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Then show what changes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    /// With more columns.
    Wide,
    Json,
    Yaml,
    /// `deployment.apps/serve`
    Name,
    /// What is said of it in its status: every condition, with its reason and its message.
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
        let mut seen = BTreeSet::new();
        clusters.retain(|name| seen.insert(name.clone()));
        if let ([] | [_], true) = (clusters.as_slice(), self.watch) {
            return self.follow(clusters.first().map(String::as_str)).await;
        }
        if self.watch {
            let hint = "name one of them; a second terminal can watch another";
            return Err(Failure::usage("only one cluster can be watched", hint).into());
        }
        if let [] | [_] = clusters.as_slice() {
            let answer = self.ask(clusters.first().map(String::as_str), None).await?;
            self.print(&answer)?;
            return failure::last_of(answer.failures);
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
            let kind = found.target.resource.right();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        all.found.sort_by_key(|found| kinds.iter().position(|kind| *kind == found.target.resource.right()));
        self.print(&all)?;
        failure::last_of(all.failures)
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
            let hint = "leave out either the name, or --all-namespaces and --selector";
            return Err(Failure::usage("an object with a name is one, in one namespace", hint));
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
                    answer.failures.push(rest.failure(&what, &error, &target.resource.right()));
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

    fn look(&self, target: &Target, several: bool) -> Look {
        Look {
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
                    if last.target.resource.right() == one.target.resource.right()
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
            kinds
                .first()
                .is_some_and(|(first, _)| one.target.resource.right() != first.target.resource.right())
        });
        let tables = kinds.iter().map(|(one, table)| {
            let look = Look { clusters: one.cluster.is_some(), ..self.look(&one.target, several) };
            Printer::new(look).print(table)
        });
        tables.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Shows what there is, then what changes.
    async fn follow(&self, cluster: Option<&str>) -> anyhow::Result<()> {
        let (rest, targets) = self.open(cluster).await?;
        let [target] = targets.as_slice() else {
            return Err(
                Failure::usage("only one thing can be watched", "name one kind, or one object").into()
            );
        };
        let what = format!("cannot watch {}", target.resource.plural);
        let failed = |error: &kube::Error| rest.failure(&what, error, &target.resource.right());
        let form = self.output.form();
        let collection = target.resource.collection((!self.all_namespaces).then_some(&rest.namespace));
        let field = target.name.as_ref().map(|name| format!("metadata.name={name}")).unwrap_or_default();
        let selector = self.selector.as_deref().unwrap_or_default();
        let path = with_query(&collection, &[("labelSelector", selector), ("fieldSelector", &field)]);
        if target.name.is_some() {
            // Whoever names one wants to hear that it is not there.
            rest.get(&self.path(&rest, target), Form::Objects).await.map_err(|error| failed(&error))?;
        }
        let list = rest.get(&path, form).await.map_err(|error| failed(&error))?;
        let mut printer = Printer::new(self.look(target, false));
        let mut show = |value: Value| -> anyhow::Result<bool> {
            if form == Form::Table {
                return output::is_read(&printer.print(&value));
            }
            for (found, object) in objects(&[Found { cluster: None, target: target.clone(), value }]) {
                match self.output {
                    Format::Name => {
                        if !output::is_read(&format!("{}\n", found.name(&object)))? {
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
                object["metadata"]["annotations"][FROM_CLUSTER] = cluster.as_str().into();
            }
            all.push((one, object));
        }
    }
    all
}
