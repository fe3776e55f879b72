//! Which pod, and which container of it, a person means.

use serde_json::Value;

use super::rest::{Form, Rest, subject, with_query};
use super::targets::{self, Target};
use super::{catalog::escaped, text};
use crate::failure::Failure;

/// What one may choose a container with, beside its place.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// A pod and a container in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) pod: String,
    pub(crate) container: String,
}

impl Chosen {
    /// The path of a part of the pod: `log`, `exec`.
    pub(crate) fn path(&self, rest: &Rest, part: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{}/{part}", escaped(&rest.namespace), escaped(&self.pod))
    }
}

/// Reads `POD`, `pod/POD`, or a workload or Service as `KIND/NAME`; a choice among several is printed to stderr. `permissions` is what
/// the hub must be granted in a member for what comes next.
pub(crate) async fn choose(
    rest: &Rest,
    word: &str,
    container: Option<&str>,
    permissions: &str,
) -> Result<Chosen, Failure> {
    let word = if word.contains('/') { word.to_owned() } else { format!("pods/{word}") };
    let target = targets::read(std::slice::from_ref(&word), &rest.catalog().await?)?.into_iter().next();
    let Some(Target { resource, name: Some(name) }) = target else {
        return Err(Failure::usage(&format!("invalid pod `{word}`"), "give POD, or KIND/NAME"));
    };
    let what = format!("cannot get {}", subject(&resource, &name));
    let object = rest.get(&resource.object(&rest.namespace, &name), Form::Objects).await;
    let is_pod = resource.kind == "Pod";
    let lacks =
        if is_pod { permissions.to_owned() } else { format!("{},{permissions}", resource.group_resource()) };
    let object = object.map_err(|error| rest.failure(&what, &error, &lacks))?;
    let pod = if is_pod { object } else { of_workload(rest, &word, &object, permissions).await? };
    let (container, note) = choose_container(&pod, container)?;
    if let Some(note) = note {
        eprintln!("{note}");
    }
    Ok(Chosen { pod: text(&pod, "/metadata/name").to_owned(), container })
}

/// One of the pods that an object speaks of: one that runs, if any does.
async fn of_workload(rest: &Rest, word: &str, object: &Value, permissions: &str) -> Result<Value, Failure> {
    let labels = selector(object).ok_or_else(|| {
        let hint = "give the name of a pod; list them with `atoll get pods`";
        Failure::usage(&format!("{word} has no pod selector"), hint)
    })?;
    let path = format!("/api/v1/namespaces/{}/pods", escaped(&rest.namespace));
    let list = rest.get(&with_query(&path, &[("labelSelector", &labels)]), Form::Objects).await;
    let list = list.map_err(|error| rest.failure("cannot list pods", &error, permissions))?;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let running = pods.iter().find(|pod| text(pod, "/status/phase") == "Running");
    let Some(pod) = running.or(pods.first()) else {
        let hint = format!("see `atoll describe {word}`");
        return Err(Failure::plain(&format!("{word} has no pods"), &hint));
    };
    if pods.len() > 1 {
        eprintln!("Found {} pods, using pod/{}", pods.len(), text(pod, "/metadata/name"));
    }
    Ok(pod.clone())
}

/// The labels of the pods that an object speaks of.
fn selector(object: &Value) -> Option<String> {
    let labels = object.pointer("/spec/selector/matchLabels").or_else(|| object.pointer("/spec/selector"))?;
    let pair = |(key, value): (&String, &Value)| value.as_str().map(|value| format!("{key}={value}"));
    let pairs: Option<Vec<String>> = labels.as_object()?.iter().map(pair).collect();
    pairs.filter(|pairs| !pairs.is_empty()).map(|pairs| pairs.join(","))
}

/// The container that is meant, and what to say if it was chosen among several.
fn choose_container(pod: &Value, asked: Option<&str>) -> Result<(String, Option<String>), Failure> {
    let names = |list: &str| -> Vec<String> {
        let all = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        all.into_iter().flatten().map(|one| text(one, "/name").to_owned()).collect()
    };
    let main = names("containers");
    let all = [main.clone(), names("initContainers"), names("ephemeralContainers")].concat();
    let named = pod
        .pointer("/metadata/annotations")
        .map_or("", |all| all[DEFAULT_CONTAINER].as_str().unwrap_or_default());
    match asked {
        Some(asked) if all.iter().any(|name| name == asked) => Ok((asked.to_owned(), None)),
        Some(asked) => {
            let what = format!("container `{asked}` not found in pod {}", text(pod, "/metadata/name"));
            Err(Failure::usage(&what, &format!("valid containers are {}", all.join(", "))))
        }
        None => {
            let first = main.iter().find(|name| *name == named).or(main.first()).cloned().unwrap_or_default();
            let note = format!("Defaulted container \"{first}\" out of: {}", all.join(", "));
            Ok((first, (all.len() > 1).then_some(note)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_container_is_meant_unless_one_is_named() {
        let pod = |extra: Value| {
            json!({"metadata": {"name": "p", "annotations": extra},
                "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}})
        };
        let chosen =
            |pod: &Value, asked| choose_container(pod, asked).map(|(name, note)| (name, note.is_some()));
        assert_eq!(chosen(&pod(json!({})), None).unwrap(), ("a".to_owned(), true));
        assert_eq!(chosen(&pod(json!({DEFAULT_CONTAINER: "b"})), None).unwrap(), ("b".to_owned(), true));
        assert_eq!(chosen(&pod(json!({})), Some("i")).unwrap(), ("i".to_owned(), false));
        let alone = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}});
        assert_eq!(chosen(&alone, None).unwrap(), ("a".to_owned(), false));
        assert_eq!(chosen(&alone, Some("x")).unwrap_err().to_string(), "container `x` not found in pod p");
    }

    #[test]
    fn workloads_and_services_say_which_pods_are_theirs() {
        let deployment = json!({"spec": {"selector": {"matchLabels": {"app": "web", "tier": "front"}}}});
        assert_eq!(selector(&deployment).as_deref(), Some("app=web,tier=front"));
        assert_eq!(selector(&json!({"spec": {"selector": {"app": "web"}}})).as_deref(), Some("app=web"));
        for none in [
            json!({"spec": {}}),
            json!({"spec": {"selector": {}}}),
            json!({"spec": {"selector": {"matchExpressions": []}}}),
        ] {
            assert_eq!(selector(&none), None, "{none}");
        }
    }
}
