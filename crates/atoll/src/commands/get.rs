//! `atoll get`: shows objects of any kind.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::context::ClusterApi;
use crate::failure::{self, Failure};
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::table::{Look, Printer};
use crate::objects::targets::{self, Target};
use crate::objects::{hide_managers, text};
use crate::output;

/// Show objects of any kind, as kubectl does.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll get pods -A
  atoll get -C member2 serviceimports,services
  atoll get deployment serve -o yaml
  atoll get serviceexport serve -o conditions      why it is as it is
  atoll get endpointslices -l kubernetes.io/service-name=serve --watch")]
pub(crate) struct Get {
    /// Kinds and names: `KIND[,KIND] [NAME…]`, or `KIND/NAME…`.
    #[arg(required = true, value_name = "KIND")]
    what: Vec<String>,
    #[command(flatten)]
    cluster: ClusterApi,
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

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = self.cluster.config().await?;
        if self.watch {
            // Nothing may happen for long.
            config.read_timeout = None;
        }
        let rest = Rest::new(config)?;
        let catalog =
            rest.catalog().await.map_err(|error| Failure::request("cannot ask what there is", &error))?;
        let targets = targets::read(&self.what, &catalog)?;
        let named = targets.iter().any(|target| target.name.is_some());
        if named && (self.all_namespaces || self.selector.is_some()) {
            let hint = "leave out either the name, or --all-namespaces and --selector";
            return Err(Failure::usage("an object with a name is one, in one namespace", hint).into());
        }
        if self.watch {
            return match targets.as_slice() {
                [target] => self.follow(&rest, target).await,
                _ => {
                    Err(Failure::usage("only one thing can be watched", "name one kind, or one object")
                        .into())
                }
            };
        }
        let mut failures = Vec::new();
        let mut found: Vec<(Target, Value)> = Vec::new();
        for target in targets {
            match rest.get(&self.path(&rest, &target), self.output.form()).await {
                Ok(value) => found.push((target, value)),
                Err(error) => {
                    let what = target.name.as_deref().map_or_else(
                        || format!("cannot list {}", target.resource.plural),
                        |name| format!("cannot get {}", subject(&target.resource, name)),
                    );
                    failures.push(Failure::request(&what, &error));
                }
            }
        }
        self.print(&rest, &found, failures.is_empty())?;
        failure::last_of(failures)
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
            namespaces: self.all_namespaces && target.resource.namespaced,
            prefix: if several { format!("{}/", target.resource.label()) } else { String::new() },
        }
    }

    fn print(&self, rest: &Rest, found: &[(Target, Value)], complete: bool) -> anyhow::Result<()> {
        let nothing = || {
            let anywhere = self.all_namespaces || found.iter().all(|(target, _)| !target.resource.namespaced);
            if anywhere {
                "No resources found".to_owned()
            } else {
                format!("No resources found in {} namespace.", rest.namespace)
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
                let lines = objects(found).into_iter().map(|(target, object)| {
                    format!("{}\n", subject(&target.resource, text(&object, "/metadata/name")))
                });
                output::text(&lines.collect::<String>())
            }
            Format::Conditions => {
                let all: Vec<String> =
                    objects(found).iter().map(|(target, object)| conditions(target, object)).collect();
                output::text(&all.join("\n"))
            }
            Format::Json | Format::Yaml => {
                let mut all: Vec<Value> = objects(found).into_iter().map(|(_, object)| object).collect();
                let alone = matches!(found, [(target, _)] if target.name.is_some());
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
    fn tables(&self, found: &[(Target, Value)]) -> String {
        let mut kinds: Vec<(&Target, Value)> = Vec::new();
        for (target, table) in found {
            // Several objects of a kind stand in one table.
            match kinds.last_mut() {
                Some((last, all)) if last.resource == target.resource => {
                    if let (Some(rows), Some(more)) = (all["rows"].as_array_mut(), table["rows"].as_array()) {
                        rows.extend(more.iter().cloned());
                    }
                }
                _ => kinds.push((target, table.clone())),
            }
        }
        let several = kinds.len() > 1;
        let tables =
            kinds.iter().map(|(target, table)| Printer::new(self.look(target, several)).print(table));
        tables.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Shows what there is, then what changes.
    async fn follow(&self, rest: &Rest, target: &Target) -> anyhow::Result<()> {
        let what = format!("cannot watch {}", target.resource.plural);
        let failed = |error: &kube::Error| Failure::request(&what, error);
        let form = self.output.form();
        let collection = target.resource.collection((!self.all_namespaces).then_some(&rest.namespace));
        let field = target.name.as_ref().map(|name| format!("metadata.name={name}")).unwrap_or_default();
        let selector = self.selector.as_deref().unwrap_or_default();
        let path = with_query(&collection, &[("labelSelector", selector), ("fieldSelector", &field)]);
        if target.name.is_some() {
            // Whoever names one wants to hear that it is not there.
            rest.get(&self.path(rest, target), Form::Objects).await.map_err(|error| failed(&error))?;
        }
        let list = rest.get(&path, form).await.map_err(|error| failed(&error))?;
        let mut printer = Printer::new(self.look(target, false));
        let mut show = |value: Value| -> anyhow::Result<bool> {
            if form == Form::Table {
                return output::is_read(&printer.print(&value));
            }
            for (target, object) in objects(&[(target.clone(), value)]) {
                match self.output {
                    Format::Name => {
                        let name = subject(&target.resource, text(&object, "/metadata/name"));
                        if !output::is_read(&format!("{name}\n"))? {
                            return Ok(false);
                        }
                    }
                    Format::Yaml => {
                        output::text("---\n")?;
                        self.document(&object)?;
                    }
                    Format::Conditions => output::text(&conditions(target, &object))?,
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

/// The conditions of one object: name, then a line each.
fn conditions(target: &Target, object: &Value) -> String {
    let name = subject(&target.resource, text(object, "/metadata/name"));
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    let rows = list.into_iter().flatten().map(|one| {
        let cell = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        vec![cell("type"), cell("status"), cell("reason"), cell("message")]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return format!("{name}: no conditions\n");
    }
    format!("{name}\n{}", output::table(&["TYPE", "STATUS", "REASON", "MESSAGE"], &rows))
}

/// The objects of answers, one by one, each with its type.
fn objects(found: &[(Target, Value)]) -> Vec<(&Target, Value)> {
    let mut all = Vec::new();
    for (target, value) in found {
        let list = value.get("items").and_then(Value::as_array).filter(|_| target.name.is_none());
        for object in list.map_or_else(|| vec![value.clone()], Clone::clone) {
            let mut object = object;
            object["apiVersion"] = target.resource.api_version().into();
            object["kind"] = target.resource.kind.as_str().into();
            hide_managers(&mut object);
            all.push((target, object));
        }
    }
    all
}
