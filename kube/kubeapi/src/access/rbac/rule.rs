//! One rule of a role: which verbs on which resources or paths.

use super::{Attributes, Target, combined};
use serde::{Deserialize, Serialize};

/// A `PolicyRule`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// What may be done; `*` for everything.
    pub verbs: Vec<String>,
    /// Of which API groups; `*` for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// To which resources: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// To which of them by name; to all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Or to which paths; one that ends with `*` is a prefix.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    pub(super) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !any_or(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|url| path_in(url, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                any_or(&self.api_groups, group)
                    && resource_in(&self.resources, resource, subresource)
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|own| own == name))
            }
        }
    }

    /// As it is shown to who may not grant it.
    pub(super) fn text(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let said: Vec<String> = parts
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        format!("{{{}}}", said.join(", "))
    }
}

/// A list as Go prints it.
pub(super) fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", values.join(" "))
}

pub(super) fn any_or(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == "*" || value == wanted)
}

pub(super) fn path_in(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

fn resource_in(resources: &[String], resource: &str, subresource: &str) -> bool {
    let wanted = combined(resource, subresource);
    resources.iter().any(|own| {
        own == "*"
            || *own == wanted
            || (!subresource.is_empty() && own.strip_prefix("*/") == Some(subresource))
    })
}
