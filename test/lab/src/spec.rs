//! What a lab is to have when it is started.

use crate::addresses::{MOST_BYSTANDERS, MOST_CLUSTERS};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// How much of Kubernetes each cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Everything: an API, controllers, a node that runs pods, DNS.
    Whole,
    /// etcd and kube-apiserver only, for what needs no pods.
    ApiOnly,
    /// As `ApiOnly`, with the controllers that an API is not whole without: of namespaces, garbage and roles.
    ApiWithCleanup,
}

/// A lab to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The lab's name; labs of different names can be up side by side.
    pub name: String,
    /// How many clusters; they are called `member1`, `member2`, …
    pub clusters: u8,
    /// How much of Kubernetes each has.
    pub kind: Kind,
    /// Hosts outside all clusters, on the same network: a hub, a client, a load balancer.
    pub bystanders: Vec<String>,
    /// Whether etcd waits for the disk.
    pub fsync: bool,
    /// Whether API servers record the requests that they get.
    pub audit: bool,
    /// The numbers of the clusters whose API is of the oldest Kubernetes that is supported.
    #[serde(default)]
    pub oldest: Vec<u8>,
}

impl Spec {
    /// `clusters` whole clusters.
    pub fn whole(name: &str, clusters: u8) -> Self {
        Self {
            name: name.to_owned(),
            clusters,
            kind: Kind::Whole,
            bystanders: Vec::new(),
            fsync: false,
            audit: true,
            oldest: Vec::new(),
        }
    }

    /// `clusters` that are only an API.
    pub fn api_only(name: &str, clusters: u8) -> Self {
        Self { kind: Kind::ApiOnly, ..Self::whole(name, clusters) }
    }

    /// `clusters` that are only an API, and in which deleted namespaces and orphans go away and roles aggregate.
    pub fn api_with_cleanup(name: &str, clusters: u8) -> Self {
        Self { kind: Kind::ApiWithCleanup, ..Self::whole(name, clusters) }
    }

    /// Adds a host outside all clusters.
    pub fn with_bystander(mut self, name: &str) -> Self {
        self.bystanders.push(name.to_owned());
        self
    }

    /// Gives the cluster of this number the API of the oldest Kubernetes that is supported.
    pub fn with_oldest(mut self, number: u8) -> Self {
        self.oldest.push(number);
        self
    }

    /// The clusters' names.
    pub fn cluster_names(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.clusters).map(|number| format!("member{number}"))
    }

    /// Refuses what can't be.
    pub fn check(&self) -> Result<()> {
        check_name("lab", &self.name)?;
        if self.clusters == 0 || self.clusters > MOST_CLUSTERS {
            return Err(Error::refused(
                format!("a lab cannot have {} clusters", self.clusters),
                format!("ask for 1 to {MOST_CLUSTERS}"),
            ));
        }
        if self.oldest.iter().any(|number| !(1..=self.clusters).contains(number)) {
            return Err(Error::refused(
                format!("there is no cluster of each of these numbers: {:?}", self.oldest),
                format!("name clusters from 1 to {}", self.clusters),
            ));
        }
        if self.kind == Kind::Whole && !self.oldest.is_empty() {
            return Err(Error::refused(
                "of the oldest Kubernetes there is only the API",
                "ask for clusters that are only an API",
            ));
        }
        if self.bystanders.len() > MOST_BYSTANDERS.into() {
            return Err(Error::refused(
                format!("a lab cannot have {} bystanders", self.bystanders.len()),
                format!("ask for at most {MOST_BYSTANDERS}"),
            ));
        }
        for (index, name) in self.bystanders.iter().enumerate() {
            check_name("bystander", name)?;
            if self.bystanders[..index].contains(name) || self.cluster_names().any(|cluster| cluster == *name)
            {
                return Err(Error::refused(format!("two hosts are called `{name}`"), "choose another name"));
            }
        }
        Ok(())
    }
}

/// Names become folders, host names and kubeconfig contexts.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if letters && (1..=32).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-') {
        return Ok(());
    }
    Err(Error::refused(
        format!("`{name}` cannot be the name of a {what}"),
        "use 1 to 32 lower-case letters, digits and dashes, with no dash at either end",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_what_to_do() {
        for (spec, word) in [
            (Spec::whole("test", 0), "0 clusters"),
            (Spec::whole("test", 81), "81 clusters"),
            (Spec::whole("../etc", 1), "../etc"),
            (Spec::whole("", 1), "name of a lab"),
            (Spec::whole("test", 1).with_oldest(1), "only the API"),
            (Spec::api_only("test", 1).with_oldest(2), "[2]"),
            (Spec::whole("test", 1).with_bystander("member1"), "two hosts"),
            (Spec::whole("test", 1).with_bystander("hub").with_bystander("hub"), "two hosts"),
        ] {
            let text = spec.check().unwrap_err().to_string();
            assert!(text.contains(word) && text.contains("hint: "), "{text}");
        }
        Spec::whole("test", 3).with_bystander("hub").check().unwrap();
    }
}
