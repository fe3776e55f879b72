//! `atoll promote`: an object that runs in a member becomes a template in the hub, and stays as it is.

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use crate::context::Access;
use crate::failure::Failure;
use crate::objects::catalog::{Catalog, Resource, escaped};
use crate::objects::rest::{Form, Rest, subject};
use crate::objects::targets::{self, Target};
use crate::objects::{promotion, text};
use crate::output::{self, Format};

/// Make a template of an object that runs in a member, with a policy that leads it to that member. The object itself stays as it is,
/// and stays when the template is deleted.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll promote deployment serve -n default -C member1 --dry-run     print what would be made
  atoll promote deployment serve -n default -C member1
  atoll promote crd boats.sea.example -C member1 --policy-name boats
  atoll promote service serve -C member1 --auto-create-policy=false")]
pub(crate) struct Promote {
    /// Its kind, such as deployment or deployments.apps, and its name; or KIND/NAME.
    #[arg(required = true, value_name = "KIND NAME", num_args = 1..=2)]
    what: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// The member that it runs in.
    #[arg(short = 'C', long, value_name = "NAME", required = true)]
    cluster: String,
    /// Make a policy for it; without one a policy of your own has to select it, with `conflictResolution: Overwrite`.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    auto_create_policy: bool,
    /// The name of the policy [default: NAME-KIND].
    #[arg(long, value_name = "NAME")]
    policy_name: Option<String>,
    /// Print what would be made, and make nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// What is made in the hub.
struct Making {
    resource: Resource,
    object: Value,
}

impl Making {
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
        let template = self.making(&catalog, template)?;
        let policy = match self.auto_create_policy {
            true => Some(self.making(&catalog, policy)?),
            false => None,
        };
        self.check_member(&hub).await?;
        if hub.find(&template.path()).await.map_err(|error| self.failed(&template, &error))?.is_some() {
            let what = format!("the hub has {} already", template.name());
            let hint = "delete it there first, or change it there: it is a template, if a policy selects it";
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
            return Err(Failure::usage("one object can be promoted at a time", "say KIND NAME").into());
        };
        let what = format!("cannot get {} of `{}`", subject(resource, name), self.cluster);
        let object = member.get(&resource.object(&member.namespace, name), Form::Objects).await;
        let mut object = object.map_err(|error| member.failure(&what, &error, &resource.right()))?;
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.as_str().into();
        let unfit = |unfit: promotion::Unfit| {
            let what = format!("cannot promote {}", subject(resource, name));
            Failure::ended(&what, &unfit.why()).with_hint(&unfit.hint())
        };
        Ok(promotion::template(&object).map_err(unfit)?)
    }

    fn making(&self, catalog: &Catalog, object: Value) -> Result<Making, Failure> {
        let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
        let resource = catalog.of_kind(version, kind).cloned().ok_or_else(|| {
            let hint = format!(
                "promote its definition first, such as `atoll promote crd PLURAL.GROUP -C {}`; or check that \
                 --kubeconfig leads to a hub",
                self.cluster
            );
            Failure::plain(&format!("the hub knows no {kind} of {version}"), &hint)
        })?;
        Ok(Making { resource, object })
    }

    /// Only a member can have it back.
    async fn check_member(&self, hub: &Rest) -> Result<(), Failure> {
        let what = format!("cannot look for the member `{}`", self.cluster);
        let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{}", escaped(&self.cluster));
        match hub.find(&path).await.map_err(|error| Failure::request(&what, &error))? {
            Some(_) => Ok(()),
            None => Err(Failure::usage(
                &format!("`{}` is no member of this hub", self.cluster),
                "`atoll clusters` shows the members",
            )),
        }
    }

    /// Makes both. The policy first, so that no other one gets hold of the template; but not before the template is known to pass.
    async fn make(&self, hub: &Rest, template: &Making, policy: Option<&Making>) -> anyhow::Result<()> {
        let make = async |one: &Making, dry_run: bool| {
            let made = hub.create(&one.collection(), &one.object, dry_run).await;
            made.map_err(|error| self.failed(one, &error))
        };
        make(template, true).await?;
        if let Some(policy) = policy {
            make(policy, false).await?;
        }
        if let Err(failure) = make(template, false).await {
            if let Some(policy) = policy {
                let taken_back = hub.delete(&policy.path()).await;
                if let Err(error) = taken_back {
                    eprintln!("note: {} is left behind: {error}", policy.name());
                }
            }
            return Err(failure.into());
        }
        Ok(())
    }

    fn failed(&self, one: &Making, error: &kube::Error) -> Failure {
        let failure = Failure::request(&format!("cannot make {} in the hub", one.name()), error);
        let namespace = text(&one.object, "/metadata/namespace");
        match error {
            kube::Error::Api(status) if status.code == 404 && !namespace.is_empty() => {
                failure.with_hint(&format!(
                    "`atoll promote namespace {namespace} -C {}` brings the namespace there; it is then made in every member",
                    self.cluster
                ))
            }
            kube::Error::Api(status) if status.code == 409 => {
                failure.with_hint("somebody else made it; for a policy say another --policy-name")
            }
            _ => failure,
        }
    }

    fn print(&self, template: &Making, policy: Option<&Making>) -> anyhow::Result<()> {
        let all: Vec<&Making> = policy.into_iter().chain([template]).collect();
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
