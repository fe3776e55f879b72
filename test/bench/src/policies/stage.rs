//! The clusters while policies are measured on them: templates in the hub, copies in members.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};

use super::{CopyWatchers, SUBJECTS};
use crate::error::{Doing, Error};
use crate::floor::Floor;
use crate::objects::hub::{self as objects, POLICY, template_name};
use crate::objects::{ROLE, SERVICE};
use crate::options::Who;
use crate::scenario::between;
use crate::stage::{Member, PATIENCE, REST, in_flight, rest};
use crate::stand_in::StandIn;

/// A copy in a member: in which, whose, of which template, with which content.
pub(super) type CopySight = (usize, Who, String, usize);

/// Watchers of the copies of every member.
pub(super) async fn watchers(members: &[Member]) -> Result<CopyWatchers, Error> {
    let mut watchers = CopyWatchers::new();
    for (index, member) in members.iter().enumerate() {
        watchers.watch(Api::<ConfigMap>::all(member.client.clone()), move |map| {
            let (who, name, revision) = objects::held_map(map)?;
            Some((index, who, name.to_owned(), revision))
        });
    }
    watchers.listed().await
}

/// Deletes what an earlier run, or this one, left. The product follows where templates go.
pub(super) async fn sweep(hub: &Member, members: &[Member]) -> Result<(), Error> {
    delete_policy(&hub.client).await?;
    for who in SUBJECTS {
        delete_maps(&hub.client, who).await?;
    }
    for member in members {
        delete_maps(&member.client, Who::Floor).await?;
    }
    Ok(())
}

async fn delete_maps(client: &Client, who: Who) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), who.namespace());
    let gone = api.delete_collection(&DeleteParams::default(), &ListParams::default().labels(ROLE)).await;
    gone.map(drop).doing(|| format!("delete the ConfigMaps of {who:?}"))
}

async fn delete_policy(hub: &Client) -> Result<(), Error> {
    let namespace = Who::Ours.namespace();
    let api: Api<DynamicObject> = Api::namespaced_with(hub.clone(), namespace, &objects::policies());
    match api.delete(POLICY, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        gone => gone.map(drop).doing(|| "delete the policy".to_owned()),
    }
}

/// The clusters, and what is on them.
pub(super) struct Stage {
    pub(super) hub: Client,
    pub(super) members: Vec<(String, Client)>,
    pub(super) watchers: CopyWatchers,
    pub(super) floor: Floor,
    /// The number of the content that each template has.
    pub(super) revisions: BTreeMap<Who, Vec<usize>>,
}

impl Stage {
    /// `count` templates are there, and then the policy: milliseconds from asking for it to the last copy.
    pub(super) async fn by_policy(&mut self, who: Who, count: usize) -> Result<f64, Error> {
        self.make_templates(who, count).await?;
        tokio::time::sleep(REST).await; // product and floor have seen them, and did nothing about them
        self.watchers.forget();
        let from = Instant::now();
        self.make_policy(who).await?;
        self.all_seen(who, count, from).await
    }

    /// The policy is there, and then `count` templates: milliseconds from asking for the first to the last copy.
    pub(super) async fn by_templates(&mut self, who: Who, count: usize) -> Result<f64, Error> {
        self.make_policy(who).await?;
        tokio::time::sleep(REST).await;
        self.watchers.forget();
        let from = Instant::now();
        self.make_templates(who, count).await?;
        self.all_seen(who, count, from).await
    }

    async fn all_seen(&mut self, who: Who, count: usize, from: Instant) -> Result<f64, Error> {
        let each = |member| (0..count).map(move |index| (member, who, template_name(index), 0));
        let awaited: HashSet<CopySight> = (0..self.members.len()).flat_map(each).collect();
        let seen = self.watchers.wait_for(&format!("{count} copies of {who:?}"), awaited, PATIENCE).await?;
        self.revisions.insert(who, vec![0; count]);
        self.settle(who).await?;
        Ok(between(from, seen))
    }

    async fn make_templates(&self, who: Who, count: usize) -> Result<(), Error> {
        let api: &Api<ConfigMap> = &Api::namespaced(self.hub.clone(), who.namespace());
        let (names, post) = ((0..count).map(template_name).collect::<Vec<_>>(), &PostParams::default());
        in_flight(
            &names,
            |name| async move { api.create(post, &objects::template(who, name, 0)).await.map(drop) },
        )
        .await
        .doing(|| format!("make the templates of {who:?}"))
    }

    async fn make_policy(&self, who: Who) -> Result<(), Error> {
        let post = PostParams::default();
        let made = if who == Who::Ours {
            let clusters: Vec<_> = self.members.iter().map(|(name, _)| name.clone()).collect();
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.hub.clone(), who.namespace(), &objects::policies());
            api.create(&post, &objects::propagation_policy(&clusters)).await.map(drop)
        } else {
            let api: Api<ConfigMap> = Api::namespaced(self.hub.clone(), who.namespace());
            api.create(&post, &objects::stand_in_policy()).await.map(drop)
        };
        made.doing(|| format!("make the policy of {who:?}"))
    }

    /// Changes one template; what will be seen of it.
    pub(super) async fn change(&mut self, who: Who, index: usize) -> Result<HashSet<CopySight>, Error> {
        let Some(revision) = self.revisions.get_mut(&who).and_then(|all| all.get_mut(index)) else {
            return Ok(HashSet::new());
        };
        *revision += 1;
        let (name, revision) = (template_name(index), *revision);
        let api: Api<ConfigMap> = Api::namespaced(self.hub.clone(), who.namespace());
        let changed = objects::template(who, &name, revision);
        let put = api.replace(&name, &PostParams::default(), &changed).await;
        put.map(drop).doing(|| format!("change a template of {who:?}"))?;
        Ok((0..self.members.len()).map(|member| (member, who, name.clone(), revision)).collect())
    }

    /// Takes all templates of `who` away, and waits until nothing is left of them.
    pub(super) async fn clear(&mut self, who: Who) -> Result<(), Error> {
        self.revisions.remove(&who);
        delete_maps(&self.hub, who).await?; // with the floor's, its policy
        match who {
            Who::Ours => {
                self.settle(who).await?;
                delete_policy(&self.hub).await?;
            }
            Who::Floor | Who::Copier => {
                for (_, client) in &self.members {
                    delete_maps(client, who).await?;
                }
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.hub.clone(), who.namespace(), &StandIn::Binding.resource());
                let ours = ListParams::default().labels(SERVICE);
                let gone = api.delete_collection(&DeleteParams::default(), &ours).await;
                gone.map(drop).doing(|| "delete the floor's bindings".to_owned())?;
            }
        }
        tokio::time::sleep(REST).await;
        Ok(())
    }

    /// Waits until also those are there that were not timed.
    async fn settle(&self, who: Who) -> Result<(), Error> {
        let count = self.revisions.get(&who).map_or(0, Vec::len);
        rest(who, async || match who {
            Who::Ours => self.lacks(count).await,
            Who::Floor | Who::Copier => {
                Ok((!self.floor.rests()).then(|| "the floor's own writes".to_owned()))
            }
        })
        .await
    }

    /// What is not as `count` templates of ours leave it, if something is not.
    async fn lacks(&self, count: usize) -> Result<Option<String>, Error> {
        let (namespace, all) = (Who::Ours.namespace(), ListParams::default());
        let bindings: Api<DynamicObject> =
            Api::namespaced_with(self.hub.clone(), namespace, &objects::bindings());
        let bindings = bindings.list(&all).await.doing(|| "list bindings".to_owned())?.items;
        let applied = bindings.iter().filter(|binding| objects::is_applied(binding)).count();
        if [bindings.len(), applied] != [count; 2] {
            return Ok(Some(format!("{applied} of {} bindings are applied, of {count}", bindings.len())));
        }
        for (name, client) in &self.members {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            let held = maps.list_metadata(&all.clone().labels(SERVICE)).await;
            let held = held.doing(|| format!("list what {name} holds"))?.items.len();
            if held != count {
                return Ok(Some(format!("{name} holds {held} copies of {count}")));
            }
        }
        Ok(None)
    }
}
