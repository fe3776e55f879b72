//! Images: `registry/repository:tag`, and changes of one of the three.

use serde::Deserialize;
use serde_json::Value;

use super::{Operator, containers};

/// A change of one part of images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ImageOverrider {
    /// Where the image stands; those of all containers if none is given.
    pub predicate: Option<Predicate>,
    /// Which part.
    pub component: Component,
    /// What is done.
    pub operator: Operator,
    /// With what.
    #[serde(default)]
    pub value: String,
}

/// Where an image stands.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Predicate {
    /// By JSON pointer.
    pub path: String,
}

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Component {
    /// Where it is fetched from.
    Registry,
    /// Its name there.
    Repository,
    /// Its tag or digest.
    Tag,
}

pub(super) fn change(object: &mut Value, overrider: &ImageOverrider) -> Result<(), String> {
    match &overrider.predicate {
        Some(Predicate { path }) => {
            let image = object.pointer_mut(path).ok_or_else(|| format!("there is nothing at {path}"))?;
            let text = image.as_str().ok_or_else(|| format!("the value at {path} is not an image"))?;
            *image = changed(text, overrider).into();
        }
        None => {
            for container in containers(object) {
                if let Some(text) = container["image"].as_str() {
                    container["image"] = changed(text, overrider).into();
                }
            }
        }
    }
    Ok(())
}

fn changed(image: &str, overrider: &ImageOverrider) -> String {
    let mut parts = Image::parse(image);
    let part = match overrider.component {
        Component::Registry => &mut parts.registry,
        Component::Repository => &mut parts.repository,
        Component::Tag => &mut parts.tag,
    };
    match overrider.operator {
        Operator::Add => part.push_str(&overrider.value),
        Operator::Replace => part.clone_from(&overrider.value),
        Operator::Remove => part.clear(),
    }
    parts.text()
}

/// An image in its parts, each empty where it is not said.
struct Image {
    registry: String,
    repository: String,
    tag: String,
    digest: bool,
}

impl Image {
    fn parse(image: &str) -> Self {
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (registry, rest) = match image.split_once('/') {
            Some((first, rest)) if is_host(first) => (first, rest),
            _ => ("", image),
        };
        let (repository, tag, digest) = match (rest.split_once('@'), rest.rsplit_once(':')) {
            (Some((repository, digest)), _) => (repository, digest, true),
            (None, Some((repository, tag))) => (repository, tag, false),
            (None, None) => (rest, "", false),
        };
        Self { registry: registry.to_owned(), repository: repository.to_owned(), tag: tag.to_owned(), digest }
    }

    fn text(&self) -> String {
        let slash = if self.registry.is_empty() || self.repository.is_empty() { "" } else { "/" };
        let mark = match (self.tag.is_empty(), self.digest && self.tag.contains(':')) {
            (true, _) => "",
            (false, true) => "@",
            (false, false) => ":",
        };
        format!("{}{slash}{}{mark}{}", self.registry, self.repository, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_of_an_image_changes_and_the_others_stay() {
        for (image, component, operator, value, want) in [
            ("nginx", Component::Registry, Operator::Add, "test-repo", "test-repo/nginx"),
            ("nginx:1.20", Component::Registry, Operator::Replace, "reg.eu:5000", "reg.eu:5000/nginx:1.20"),
            ("k8s.io/kube/proxy:v1", Component::Registry, Operator::Remove, "", "kube/proxy:v1"),
            ("k8s.io/kube/proxy:v1", Component::Registry, Operator::Add, ".cn", "k8s.io.cn/kube/proxy:v1"),
            ("localhost:5000/a/b", Component::Repository, Operator::Replace, "c", "localhost:5000/c"),
            ("a/b:1", Component::Repository, Operator::Add, "-x", "a/b-x:1"),
            ("nginx", Component::Tag, Operator::Add, "1.2", "nginx:1.2"),
            ("nginx:1", Component::Tag, Operator::Replace, "2", "nginx:2"),
            ("nginx:1", Component::Tag, Operator::Remove, "", "nginx"),
            ("nginx@sha256:ab", Component::Tag, Operator::Replace, "sha256:cd", "nginx@sha256:cd"),
        ] {
            let overrider = ImageOverrider { predicate: None, component, operator, value: value.to_owned() };
            assert_eq!(changed(image, &overrider), want, "{image} {component:?} {operator:?}");
        }
    }
}
