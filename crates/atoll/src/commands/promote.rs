//! `atoll promote`: turns an object of a member into a template in the hub. The object itself does not change.

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use crate::context::Access;
use crate::failure::Failure;
use crate::objects::catalog::{Catalog, Resource, escaped};
use crate::objects::rest::{Form, Rest, subject};
use crate::objects::targets::{self, Target};
use crate::objects::{catalog, promotion, text};
use crate::output::{self, Format};

/// Turn an object of a member into a template in the hub.
///
/// Also creates a policy that places the template on that member. The object in the member is not changed, and it is kept when
/// the template is deleted.
#[derive(Args)]
#[command(after_help = "Examples:
  # Print the template and the policy, and create nothing
  atoll promote deployment serve -n default -C member1 --dry-run

  # Create them
  atoll promote deployment serve -n default -C member1

  # Choose the name of the policy
  atoll promote crd boats.sea.example -C member1 --policy-name boats

  # Create the template only
  atoll promote service serve -C member1 --auto-create-policy=false")]
pub(crate) struct Promote {
    /// Kind (such as deployment or deployments.apps) and name, or KIND/NAME.
    #[arg(required = true, value_name = "KIND NAME", num_args = 1..=2)]
    what: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// Member that the object runs in.
    #[arg(short = 'C', long, value_name = "NAME", required = true)]
    cluster: String,
    /// Create a policy. If false, a policy of yours must select the template, with `conflictResolution: Overwrite`.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    auto_create_policy: bool,
    /// Name of the policy [default: NAME-KIND].
    #[arg(long, value_name = "NAME")]
    policy_name: Option<String>,
    /// Print what would be created, and create nothing.
    #[arg(long)]
    dry_run: bool,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// What is made in the hub.
struct NewObject {
    resource: Resource,
    object: Value,
}

impl NewObject {
    fn name(&self) -> String {
        subject(&self.resource, text(&self.object, "/metadata/name"))
    }

    fn collection(&self) -> String {
        self.resource.collection(Some(text(&self.object, "/metadata/namespace")))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), escaped(text(&self.object, "/metadata/name")))
    }
}

impl Promote {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let hub = Rest::new(self.access.hub().await?)?;
        let catalog = hub.catalog().await?;
        let template = self.template().await?;
        let name = self.policy_name.clone().unwrap_or_else(|| promotion::policy_name(&template));
        let policy = promotion::policy(&template, &self.cluster, &name);
        let template = self.new_object(&catalog, template)?;
        let policy = match self.auto_create_policy {
            true => Some(self.new_object(&catalog, policy)?),
            false => None,
        };
        self.check_member(&hub).await?;
        if hub.find(&template.path()).await.map_err(|error| self.failed(&template, &error))?.is_some() {
            let what = format!("the hub already has {}", template.name());
            let hint = "delete it in the hub first; if a policy selects it, it already is a template";
            return Err(Failure::plain(&what, hint).into());
        }
        if !self.dry_run {
            self.make(&hub, &template, policy.as_ref()).await?;
        }
        self.print(&template, policy.as_ref())
    }

    /// Reads the object in its member.
    async fn template(&self) -> anyhow::Result<Value> {
        let member = Rest::of(self.access.cluster(Some(&self.cluster)).await?)?;
        let targets = targets::read(&self.what, &member.catalog().await?)?;
        let [Target { resource, name: Some(name) }] = targets.as_slice() else {
            return Err(Failure::usage("only one object can be promoted at a time", "give KIND NAME").into());
        };
        let what = format!("cannot get {} in `{}`", subject(resource, name), self.cluster);
        let object = member.get(&resource.object(&member.namespace, name), Form::Objects).await;
        let mut object = object.map_err(|error| member.failure(&what, &error, &resource.group_resource()))?;
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.as_str().into();
        let unfit = |unfit: promotion::NotPromotable| {
            let what = format!("cannot promote {}", subject(resource, name));
            Failure::ended(&what, &unfit.why()).with_hint(&unfit.hint())
        };
        Ok(promotion::template(&object).map_err(unfit)?)
    }

    fn new_object(&self, catalog: &Catalog, object: Value) -> Result<NewObject, Failure> {
        let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
        let resource = catalog.of_kind(version, kind).cloned().ok_or_else(|| {
            let hint = format!(
                "promote its CustomResourceDefinition first (`atoll promote crd PLURAL.GROUP -C {}`), or check that \
                 --kubeconfig is that of a hub",
                self.cluster
            );
            Failure::plain(&format!("the hub does not serve the kind {kind} of {version}"), &hint)
        })?;
        Ok(NewObject { resource, object })
    }

    /// Only a member can have it back.
    async fn check_member(&self, hub: &Rest) -> Result<(), Failure> {
        let what = format!("cannot get member `{}`", self.cluster);
        let path = catalog::member(&self.cluster);
        match hub.find(&path).await.map_err(|error| Failure::request(&what, &error))? {
            Some(_) => Ok(()),
            None => Err(Failure::usage(
                &format!("`{}` is not a member of this hub", self.cluster),
                "list the members with `atoll clusters`",
            )),
        }
    }

    /// Makes both. The policy first, so that no other one gets hold of the template; but not before the template is known to pass.
    async fn make(&self, hub: &Rest, template: &NewObject, policy: Option<&NewObject>) -> anyhow::Result<()> {
        let make = async |one: &NewObject, dry_run: bool| {
            let made = hub.create(&one.collection(), &one.object, dry_run).await;
            made.map_err(|error| self.failed(one, &error))
        };
        make(template, true).await?;
        if let Some(policy) = policy {
            make(policy, false).await?;
        }
        if let Err(failure) = make(template, false).await {
            if let Some(policy) = policy {
                let deleted = hub.delete(&policy.path()).await;
                if let Err(error) = deleted {
                    eprintln!(
                        "warning: cannot delete {}, which was created for the template: {error}",
                        policy.name()
                    );
                }
            }
            return Err(failure.into());
        }
        Ok(())
    }

    fn failed(&self, one: &NewObject, error: &kube::Error) -> Failure {
        let failure = Failure::request(&format!("cannot create {} in the hub", one.name()), error);
        let namespace = text(&one.object, "/metadata/namespace");
        match error {
            kube::Error::Api(status) if status.code == 404 && !namespace.is_empty() => {
                failure.with_hint(&format!(
                    "create the namespace in the hub with `atoll promote namespace {namespace} -C {}`; the hub then creates it in every member",
                    self.cluster
                ))
            }
            kube::Error::Api(status) if status.code == 409 => {
                failure.with_hint("it already exists; for a policy, use another --policy-name")
            }
            _ => failure,
        }
    }

    fn print(&self, template: &NewObject, policy: Option<&NewObject>) -> anyhow::Result<()> {
        let all: Vec<&NewObject> = policy.into_iter().chain([template]).collect();
        match self.output {
            Format::Json => {
                let items: Vec<&Value> = all.iter().map(|one| &one.object).collect();
                output::json(&json!({ "apiVersion": "v1", "kind": "List", "items": items }))
            }
            Format::Text if !self.dry_run => {
                let lines = all.iter().map(|one| format!("{} created\n", one.name()));
                output::text(&lines.collect::<String>())
            }
            Format::Text | Format::Yaml => {
                for (index, one) in all.iter().enumerate() {
                    if index > 0 {
                        output::text("---\n")?;
                    }
                    output::yaml(&one.object)?;
                }
                Ok(())
            }
        }
    }
}
