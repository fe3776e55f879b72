//! Who wrote a policy, on a real kube-apiserver: its own admission writes it down, and nobody else does.

use super::{SOON, World, applied, has, kubectl};
use crate::harness::Outcome;
use anyhow::{Context, ensure};
use atoll_lab::audit::Recorder;
use atoll_lab::suite::name;
use atoll_lab::{Deadline, Spec, until};
use serde_json::{Value, json};
use std::time::Duration;

const OBJECTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: of-bob, namespace: shop}
rules:
- {apiGroups: [policy.karmada.io, work.karmada.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: of-bob, namespace: shop}
subjects: [{kind: User, name: bob, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: Role, name: of-bob, apiGroup: rbac.authorization.k8s.io}
"#;

fn policy() -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "roles", "namespace": "shop", "annotations": {"atoll.dev/author": "{\"username\":\"nobody\"}"}},
        "spec": {"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "reader"}]}})
}

fn overriding(verbs: &Value) -> String {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "more", "namespace": "shop",
            "annotations": {"atoll.dev/author": "{\"username\":\"root\",\"groups\":[\"system:masters\"]}"}},
        "spec": {"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "reader"}],
            "overrideRules": [{"overriders": {"plaintext": [
                {"path": "/rules/0/verbs", "operator": "replace", "value": verbs}]}}]}})
    .to_string()
}

fn author(object: &Value) -> String {
    let stamp = object["metadata"]["annotations"]["atoll.dev/author"].as_str().unwrap_or_default();
    let stamp: Value = serde_json::from_str(stamp).unwrap_or_default();
    stamp["username"].as_str().unwrap_or_default().to_owned()
}

pub(super) async fn authors() -> Outcome {
    let world = World::on_a_real_api(Spec::api_only(&name("authors"), 2)).await?;
    let told = story(&world).await;
    if told.is_err() {
        world.keep_evidence("on_a_real_api_server_policies_act_with_their_authors_rights").await;
    }
    told
}

async fn story(world: &World) -> Outcome {
    let two = world.lab.member(2);
    world.join(2, &["--allow-propagation"]).await?;
    world.kubectl(&["create", "namespace", "shop"], "").await?;
    world.apply(OBJECTS).await?;
    // The API server has taken up what the hub has installed.
    until(Deadline::after(SOON, "policies are stamped"), async || {
        let made = world
            .kubectl(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &policy().to_string())
            .await;
        Ok(match made.map(|text| serde_json::from_str::<Value>(&text).unwrap_or_default()) {
            Ok(made) if !["", "nobody"].contains(&author(&made).as_str()) => Ok(()),
            Ok(made) => Err(made.to_string()),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    let role = ["-n", "shop", "role", "reader"];
    // A hub that has just installed its admission policies takes off all stamps once: then it has to be applied again.
    let mut brought = false;
    for _ in 0..6 {
        world.apply(&policy().to_string()).await?;
        let found = has(two, &role, "it is brought", |found| found["rules"][0]["verbs"] == json!(["get"]));
        brought = tokio::time::timeout(Duration::from_secs(8), found).await.is_ok_and(|found| found.is_ok());
        if brought {
            break;
        }
    }
    ensure!(brought, "the role is not brought to member2");

    // Bob's override of what he does not have, with an administrator's name on it.
    let bob = ["--as", "bob", "--as-group", "dev"];
    let by_bob = |words: &[&'static str]| [&bob[..], words].concat();
    world.kubectl(&by_bob(&["create", "-f", "-"]), &overriding(&json!(["*"]))).await?;
    let more = ["-n", "shop", "overridepolicy", "more"];
    let made = world.hub_has(&more, "it is his", |found| author(found) == "bob").await?;
    ensure!(made["metadata"]["annotations"]["atoll.dev/author"].to_string().contains("dev"), "{made:#}");
    world
        .hub_has(&["-n", "shop", "rb", "reader-role"], "it does not count", |found| {
            found.to_string().contains("shop/more does not count")
        })
        .await?;
    has(two, &role, "it is as it was", |found| found["rules"][0]["verbs"] == json!(["get"])).await?;
    let annotate = ["-n", "shop", "annotate", "--overwrite", "overridepolicy", "more", "atoll.dev/author={}"];
    world.kubectl(&by_bob(&annotate), "").await?;
    world.hub_has(&more, "it is still his", |found| author(found) == "bob").await?;

    // Nor does he write the hub's memory.
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "keys-secret", "namespace": "shop"},
        "spec": {"resource": {"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "keys"}}});
    let refused = world.kubectl(&by_bob(&["create", "-f", "-"]), &binding.to_string()).await;
    let refused = format!("{:#}", refused.err().context("a binding was forged")?);
    ensure!(refused.contains("only the hub writes it"), "{refused}");

    // Honest: what he has himself.
    let patch = json!([{"op": "replace", "path": "/spec/overrideRules/0/overriders/plaintext/0/value", "value": ["get", "list"]}]);
    let patch = format!("--patch={patch}");
    let words = ["-n", "shop", "patch", "overridepolicy", "more", "--type=json"];
    world.kubectl(&[&bob[..], &words[..], &[patch.as_str()]].concat(), "").await?;
    has(two, &role, "his own rights", |found| found["rules"][0]["verbs"] == json!(["get", "list"])).await?;
    forged(world).await?;
    stolen(world).await
}

/// Where no admission rule stops him, as on an older API server, what he says is the hub's memory brings and deletes nothing.
async fn forged(world: &World) -> Outcome {
    let two = world.lab.member(2);
    let role = has(two, &["-n", "shop", "role", "reader"], "it is there", |_| true).await?;
    // A copy of the hub's without a template: it would go only by what the hub remembers.
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "old", "namespace": "shop", "labels": role["metadata"]["labels"]}});
    two.apply(&[old]).await?;
    world.kubectl(&["-n", "shop", "create", "secret", "generic", "keys", "--from-literal=k=v"], "").await?;
    let guard =
        ["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "bindings.atoll.dev"];
    world.kubectl(&guard, "").await?;
    for (kind, name) in [("Secret", "keys"), ("ConfigMap", "old")] {
        let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": format!("{name}-{}", kind.to_lowercase()), "namespace": "shop",
                "annotations": {"atoll.dev/holders": "member2"}},
            "spec": {"resource": {"apiVersion": "v1", "kind": kind, "namespace": "shop", "name": name},
                "clusters": [{"name": "member2"}]}})
        .to_string();
        // The API server forgets the rule with some delay.
        until(Deadline::after(SOON, "a binding is forged"), async || {
            let made = world.kubectl(&["--as", "bob", "create", "-f", "-"], &binding).await;
            Ok(made.map_err(|error| format!("{error:#}")))
        })
        .await?;
    }
    for round in ["before", "after"] {
        let label = format!("round={round}");
        world.kubectl(&["-n", "shop", "label", "--overwrite", "role", "reader", &label], "").await?;
        let role = ["-n", "shop", "role", "reader"];
        has(two, &role, "the hub is at work", |found| found["metadata"]["labels"]["round"] == round).await?;
        let held = kubectl(two, &["-n", "shop", "get", "secrets,configmaps", "-o", "name"]).await?;
        ensure!(!held.contains("secret/keys"), "a Secret was copied {round} a restart: {held}");
        ensure!(held.contains("configmap/old"), "a copy was deleted {round} a restart: {held}");
        if round == "before" {
            world.restart().await?;
        }
    }
    Ok(())
}

/// A Cluster that points another member's Secret at a server of the attacker's: here the API of the first cluster, which has an audit log.
async fn stolen(world: &World) -> Outcome {
    let one = world.lab.member(1);
    let recorder = Recorder::of(one)?;
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&one.kubeconfig())?;
    let server = kubeconfig.clusters.first().and_then(|one| one.cluster.as_ref()?.server.clone());
    let evil = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "evil"},
        "spec": {"syncMode": "Push", "apiEndpoint": server.context("it has a server")?,
            "secretRef": {"namespace": "atoll-system", "name": "member2"},
            "impersonatorSecretRef": {"namespace": "atoll-system", "name": "member2"}}});
    world.apply(&evil.to_string()).await?;
    let refused =
        |found: &Value| found["status"]["conditions"].to_string().contains("CredentialsNotForThisCluster");
    world.hub_has(&["cluster", "evil"], "it is refused", refused).await?;
    let sent = recorder.requests().await?.into_iter().find(|request| {
        request.code == 401 || request.user == "system:serviceaccount:atoll-system:atoll-hub"
    });
    ensure!(sent.is_none(), "the token of member2 was sent to it: {sent:?}");
    world.kubectl(&["delete", "cluster", "evil"], "").await?;
    world.hub_has(&["-n", "shop", "rb", "reader-role"], "member2 is as it was", applied).await.map(drop)
}
