//! `atoll describe`: shows details and events of objects.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::context::ClusterApi;
use crate::failure::{self, Failure};
use crate::objects::describe::{Events, describe};
use crate::objects::rest::{Form, Rest, subject, with_query};
use crate::objects::targets::{self, Target};
use crate::objects::{hide_managers, text};
use crate::output;

/// Show details and events of objects.
#[derive(Args)]
#[command(after_help = "Examples:
  # Describe a deployment
  atoll describe deployment serve

  # Describe pods of a member, by name or by label
  atoll describe -C member1 pod/serve-5d9c9c6b5-x2x7k
  atoll describe -C member1 pods -l app=serve

  # See where a template of the hub was placed, and why
  atoll describe resourcebinding serve-deployment

Values of Secrets are not shown; use `atoll get secret NAME -o yaml`.")]
pub(crate) struct Describe {
    /// What to describe: `KIND[,KIND] [NAME…]`, or `KIND/NAME…`.
    #[arg(required = true, value_name = "KIND")]
    what: Vec<String>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Label selector, such as app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
}

impl Describe {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let rest = Rest::of(self.cluster.reach().await?)?;
        let catalog = rest.catalog().await?;
        let targets = targets::read(&self.what, &catalog)?;
        if self.selector.is_some() && targets.iter().any(|target| target.name.is_some()) {
            let hint = "give either a name or --selector";
            return Err(Failure::usage("a name cannot be combined with --selector", hint).into());
        }
        let (mut texts, mut failures) = (Vec::new(), Vec::new());
        for target in targets {
            match self.objects(&rest, &target).await {
                Ok(objects) => {
                    for object in objects {
                        let events = events(&rest, &object).await;
                        let cluster = self.cluster.cluster.as_deref();
                        texts.push(describe(&object, cluster, &events, Timestamp::now()));
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        if texts.is_empty() && failures.is_empty() {
            eprintln!("No resources found in {} namespace.", rest.namespace);
        }
        output::text(&texts.join("\n\n"))?;
        failure::report_all(failures)
    }

    async fn objects(&self, rest: &Rest, target: &Target) -> Result<Vec<Value>, Failure> {
        let resource = &target.resource;
        let (path, what) = match &target.name {
            Some(name) => {
                (resource.object(&rest.namespace, name), format!("cannot get {}", subject(resource, name)))
            }
            None => {
                let labels = self.selector.as_deref().unwrap_or_default();
                let path =
                    with_query(&resource.collection(Some(&rest.namespace)), &[("labelSelector", labels)]);
                (path, format!("cannot list {}", resource.plural))
            }
        };
        let answer = rest.get(&path, Form::Objects).await;
        let answer = answer.map_err(|error| rest.failure(&what, &error, &resource.group_resource()))?;
        let list = answer["items"].as_array().filter(|_| target.name.is_none()).cloned();
        let mut objects = list.unwrap_or_else(|| vec![answer]);
        for object in &mut objects {
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = resource.kind.as_str().into();
            hide_managers(object);
        }
        Ok(objects)
    }
}

/// The events about an object. Whoever may not read them still sees the object.
async fn events(rest: &Rest, object: &Value) -> Events {
    let path = match text(object, "/metadata/namespace") {
        "" => "/api/v1/events".to_owned(),
        namespace => format!("/api/v1/namespaces/{namespace}/events"),
    };
    let about = format!("involvedObject.uid={}", text(object, "/metadata/uid"));
    match rest.get(&with_query(&path, &[("fieldSelector", &about)]), Form::Objects).await {
        Ok(list) => Events::Known(list["items"].as_array().cloned().unwrap_or_default()),
        Err(error) => Events::Unknown(atoll_hub::connect::why(&error)),
    }
}
