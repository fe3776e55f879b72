//! What a person names on the command line: kinds, and names of objects. Pure.

use super::catalog::{Catalog, Resource};
use crate::failure::Failure;

/// All objects of a kind, or one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) resource: Resource,
    pub(crate) name: Option<String>,
}

/// Reads `KIND[,KIND] [NAME…]`, or any number of `KIND/NAME`.
pub(crate) fn read(words: &[String], catalog: &Catalog) -> Result<Vec<Target>, Failure> {
    let resources = |word: &str| match catalog.find(word) {
        found if found.is_empty() => Err(Failure::no_such_kind(word)),
        found => Ok(found.into_iter().cloned().collect::<Vec<_>>()),
    };
    let mut targets = Vec::new();
    if words.iter().any(|word| word.contains('/')) {
        for word in words {
            let pair = word.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty());
            let Some((kind, name)) = pair else {
                return Err(Failure::usage(
                    &format!("invalid argument `{word}`: expected KIND/NAME"),
                    "use either KIND NAME NAME…, or KIND/NAME KIND/NAME…",
                ));
            };
            let named = |resource| Target { resource, name: Some(name.to_owned()) };
            targets.extend(resources(kind)?.into_iter().map(named));
        }
        return Ok(targets);
    }
    let Some((kinds, names)) = words.split_first() else { return Ok(targets) };
    for kind in kinds.split(',').filter(|kind| !kind.is_empty()) {
        for resource in resources(kind)? {
            if names.is_empty() {
                targets.push(Target { resource, name: None });
                continue;
            }
            let named = |name: &String| Target { resource: resource.clone(), name: Some(name.clone()) };
            targets.extend(names.iter().map(named));
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog() -> Catalog {
        let resource = |plural: &str, kind: &str| json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": ["get", "list"]});
        let list = json!({"items": [{"versions": [{"version": "v1", "resources": [
            resource("pods", "Pod"), resource("services", "Service"),
        ]}]}]});
        Catalog::read(&[serde_json::from_value(list).unwrap()])
    }

    #[test]
    fn kinds_and_names_are_combined() {
        let catalog = catalog();
        for (words, want) in [
            (&["pods"][..], Ok(vec!["pods *"])),
            (&["pods,services"], Ok(vec!["pods *", "services *"])),
            (&["pod", "a", "b"], Ok(vec!["pods a", "pods b"])),
            (&["pod,service", "a"], Ok(vec!["pods a", "services a"])),
            (&["pod/a", "service/b"], Ok(vec!["pods a", "services b"])),
            (&["pod/a", "b"], Err("invalid argument `b`: expected KIND/NAME")),
            (&["pod/"], Err("invalid argument `pod/`: expected KIND/NAME")),
            (&["boats"], Err("the cluster has no resource type `boats`")),
        ] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let got = read(&words, &catalog).map_err(|failure| failure.to_string());
            let got: Result<Vec<String>, String> = got.map(|targets| {
                let shown =
                    |one: &Target| format!("{} {}", one.resource.plural, one.name.as_deref().unwrap_or("*"));
                targets.iter().map(shown).collect()
            });
            let want = want.map(|list| list.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
            assert_eq!(got, want, "{words:?}");
        }
    }
}
