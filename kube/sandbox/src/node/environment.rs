//! A container's variables: given, taken from the pod, from `ConfigMap`s and Secrets.

use super::status::PodPlacement;
use crate::programs::{Program, expand, images};
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret};
use kube::{Api, Client};
use std::collections::BTreeMap;

/// A kind of object with values in it, and the object's name.
type Source = (&'static str, String);
const CONFIG_MAP: &str = "ConfigMap";
const SECRET: &str = "Secret";

/// Objects that variables come from; none for one that is not there.
type Values = BTreeMap<Source, Option<BTreeMap<String, String>>>;

/// Reads the `ConfigMap`s and Secrets that a container's variables come from.
///
/// # Errors
/// The API does not answer.
pub(super) async fn fetch(
    client: &Client,
    namespace: &str,
    container: &Container,
) -> Result<Values, kube::Error> {
    let mut values = Values::new();
    for source in sources(container) {
        let found = match source.0 {
            SECRET => {
                let secret = Api::<Secret>::namespaced(client.clone(), namespace).get_opt(&source.1).await?;
                secret.map(|secret| {
                    let data = secret.data.unwrap_or_default().into_iter();
                    data.map(|(key, value)| (key, String::from_utf8_lossy(&value.0).into_owned())).collect()
                })
            }
            _ => {
                let map = Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(&source.1).await?;
                map.map(|map| map.data.unwrap_or_default())
            }
        };
        values.insert(source, found);
    }
    Ok(values)
}

fn sources(container: &Container) -> Vec<Source> {
    let mut sources = Vec::new();
    for from in container.env_from.iter().flatten() {
        sources.extend(from.config_map_ref.iter().map(|one| (CONFIG_MAP, one.name.clone())));
        sources.extend(from.secret_ref.iter().map(|one| (SECRET, one.name.clone())));
    }
    for from in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        sources.extend(from.config_map_key_ref.iter().map(|one| (CONFIG_MAP, one.name.clone())));
        sources.extend(from.secret_key_ref.iter().map(|one| (SECRET, one.name.clone())));
    }
    sources
}

/// The variables of a container. What is wrong is said in words.
pub(super) fn variables(
    pod: &Pod,
    container: &Container,
    node: &str,
    placement: &PodPlacement,
    values: &Values,
) -> Result<BTreeMap<String, String>, String> {
    let mut variables = given(pod, container, node, placement);
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.clone().unwrap_or_default();
        let map = from.config_map_ref.iter().map(|one| (CONFIG_MAP, &one.name, one.optional));
        let secret = from.secret_ref.iter().map(|one| (SECRET, &one.name, one.optional));
        for (kind, name, optional) in map.chain(secret) {
            match values.get(&(kind, name.clone())).and_then(Option::as_ref) {
                Some(found) => {
                    variables
                        .extend(found.iter().map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
                }
                None if optional == Some(true) => {}
                None => return Err(format!("{kind} {name:?} not found")),
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => Some(expand(variable.value.as_deref().unwrap_or_default(), &variables)),
            Some(from) => taken(pod, from, node, placement, values)?,
        };
        if let Some(value) = value {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

/// What every container is told; a command of this machine also who it is and where it should listen, since it shares
/// the machine's network.
fn given(pod: &Pod, container: &Container, node: &str, placement: &PodPlacement) -> BTreeMap<String, String> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let mut variables = BTreeMap::from([("HOSTNAME".to_owned(), name.clone())]);
    if !is_process(container) {
        return variables;
    }
    variables.extend([
        ("POD_NAME".to_owned(), name),
        ("POD_NAMESPACE".to_owned(), pod.metadata.namespace.clone().unwrap_or_default()),
        ("POD_IP".to_owned(), placement.address.to_string()),
        ("HOST_IP".to_owned(), placement.host.to_string()),
        ("NODE_NAME".to_owned(), node.to_owned()),
    ]);
    for (at, port) in container.ports.iter().flatten().enumerate() {
        let number = port.container_port.to_string();
        if at == 0 {
            variables.insert("PORT".to_owned(), number.clone());
        }
        if let Some(name) = &port.name {
            let name = name.to_uppercase().replace('-', "_");
            variables.insert(format!("PORT_{name}"), number);
        }
    }
    variables
}

fn is_process(container: &Container) -> bool {
    let program = images::find(container.image.as_deref().unwrap_or_default());
    matches!(program, Ok(Program::Process(_)))
}

fn taken(
    pod: &Pod,
    from: &EnvVarSource,
    node: &str,
    placement: &PodPlacement,
    values: &Values,
) -> Result<Option<String>, String> {
    if let Some(field) = &from.field_ref {
        return self::field(pod, &field.field_path, node, placement).map(Some);
    }
    let map = from.config_map_key_ref.as_ref().map(|one| (CONFIG_MAP, &one.name, &one.key, one.optional));
    let secret = from.secret_key_ref.as_ref().map(|one| (SECRET, &one.name, &one.key, one.optional));
    let Some((kind, name, key, optional)) = map.or(secret) else {
        return Err("the sandbox supports only fieldRef, configMapKeyRef and secretKeyRef".to_owned());
    };
    let found = values.get(&(kind, name.clone())).and_then(Option::as_ref);
    match (found.and_then(|found| found.get(key)), found) {
        (Some(value), _) => Ok(Some(value.clone())),
        _ if optional == Some(true) => Ok(None),
        (None, Some(_)) => Err(format!("couldn't find key {key} in {kind} {name}")),
        (None, None) => Err(format!("{kind} {name:?} not found")),
    }
}

fn field(pod: &Pod, path: &str, node: &str, placement: &PodPlacement) -> Result<String, String> {
    let metadata = &pod.metadata;
    let keyed = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
    if let Some(key) = keyed("metadata.labels['") {
        return Ok(metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned().unwrap_or_default());
    }
    if let Some(key) = keyed("metadata.annotations['") {
        let annotations = metadata.annotations.as_ref();
        return Ok(annotations.and_then(|annotations| annotations.get(key)).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => metadata.name.clone().unwrap_or_default(),
        "metadata.namespace" => metadata.namespace.clone().unwrap_or_default(),
        "metadata.uid" => metadata.uid.clone().unwrap_or_default(),
        "spec.nodeName" => node.to_owned(),
        "spec.serviceAccountName" => {
            let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
            account.unwrap_or_else(|| "default".to_owned())
        }
        "status.hostIP" | "status.hostIPs" => placement.host.to_string(),
        "status.podIP" | "status.podIPs" => placement.address.to_string(),
        other => return Err(format!("the sandbox does not support field {other:?}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;
    use std::net::Ipv4Addr;

    fn read(env: &serde_json::Value, values: &Values) -> Result<BTreeMap<String, String>, String> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "process:web", "env": env, "ports": [{"containerPort": 80, "name": "http-1"}]}]},
        }))
        .unwrap();
        let placement = PodPlacement {
            host: Ipv4Addr::new(127, 1, 0, 1),
            address: Ipv4Addr::new(127, 1, 1, 1),
            since: Timestamp::UNIX_EPOCH,
            bound: None,
        };
        variables(&pod, &pod.spec.as_ref().unwrap().containers[0], "member1-node", &placement, values)
    }

    #[test]
    fn variables_come_from_the_pod_and_from_each_other() {
        let field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let env = json!([
            field("NODE", "spec.nodeName"),
            field("APP", "metadata.labels['app']"),
            field("IPS", "status.podIPs"),
            {"name": "BOTH", "value": "$(APP) on $(NODE)"},
        ]);
        let found = read(&env, &Values::new()).unwrap();
        for (name, want) in [
            ("BOTH", "web on member1-node"),
            ("IPS", "127.1.1.1"),
            ("POD_NAME", "web-1"),
            ("PORT", "80"),
            ("PORT_HTTP_1", "80"),
        ] {
            assert_eq!(found[name], want, "{name}");
        }
    }

    #[test]
    fn a_value_that_is_missing_is_named() {
        let from = |optional: bool| {
            let key = json!({"name": "settings", "key": "colour", "optional": optional});
            json!([{"name": "COLOUR", "valueFrom": {"configMapKeyRef": key}}])
        };
        let there = |data: &[(&str, &str)]| {
            let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Values::from([((CONFIG_MAP, "settings".to_owned()), Some(data))])
        };
        assert_eq!(read(&from(false), &there(&[("colour", "blue")])).unwrap()["COLOUR"], "blue");
        assert!(read(&from(false), &there(&[])).unwrap_err().contains("key colour"));
        assert!(read(&from(false), &Values::new()).unwrap_err().contains("not found"));
        assert!(!read(&from(true), &Values::new()).unwrap().contains_key("COLOUR"));
    }
}
