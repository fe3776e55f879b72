//! Attacks on the hub's API by its own users: each beside the honest use that still works.

use super::*;

/// Takes away what the hub installed against others' bindings: as on an API server that has no such policies.
async fn unguarded(hub: &Cluster) -> Outcome {
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let kind = Kind::new("admissionregistration.k8s.io/v1", kind);
        let name = "bindings.atoll.dev".to_owned();
        hub.delete(&ObjectKey { kind, namespace: String::new(), name }).await?;
    }
    Ok(())
}

fn forged(kind: &str, namespace: &str, name: &str, resource: &Value) -> Value {
    let mut binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": kind,
        "metadata": {"name": name, "annotations": {"atoll.dev/holders": "member1"}},
        "spec": {"resource": resource, "placement": {}, "clusters": [{"name": "member1"}]}});
    if !namespace.is_empty() {
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}

/// Grants rights in `default`, and the right to write policies.
async fn may(hub: &Cluster, user: &str, rules: &Value) -> Outcome {
    let mut all =
        json!([{"apiGroups": ["policy.karmada.io", "work.karmada.io"], "resources": ["*"], "verbs": ["*"]}]);
    all.as_array_mut().unwrap().extend(rules.as_array().unwrap().clone());
    hub.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": format!("of-{user}"), "namespace": "default"}, "rules": all}))
        .await?;
    hub.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("of-{user}"), "namespace": "default"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": format!("of-{user}")}}))
        .await?;
    Ok(())
}

/// Waits until the hub has done something honest that was asked for after the attack.
async fn at_work(world: &World, name: &str) -> Outcome {
    let marker = world.hub.apply(&config_map("default", name, &json!({"a": "1"}))).await?;
    let named = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name}]);
    world.hub.apply(&policy("PropagationPolicy", name, named, to(&["member1"]))).await?;
    world.member(1).has(&marker).await?;
    Ok(())
}

async fn told(hub: &Cluster, about: &str, word: &str) -> Outcome {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    let events = hub.api(&Kind::new("v1", "Event"), "").await?;
    loop {
        let found = events.list(&ListParams::default()).await?;
        let said = found.iter().filter(|one| one.data["involvedObject"]["name"] == about);
        let said: Vec<String> = said.map(|one| one.data["message"].to_string()).collect();
        if said.iter().any(|message| message.contains(word)) {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < give_up, "nothing about {word:?} on {about}: {said:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn only_the_hub_writes_bindings() -> Outcome {
    let world = World::start(1).await?;
    let hub = &world.hub;
    may(hub, "bob", &json!([])).await?;
    let bob = hub.used_by("bob", &[]);
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c"});
    let refused = bob.create(forged("ResourceBinding", "default", "c-configmap", &resource)).await;
    let refused = refused.err().context("it was created")?.to_string();
    ensure!(refused.contains("only the hub writes it"), "{refused}");
    // Not the hub's administrator either.
    ensure!(hub.create(forged("ResourceBinding", "default", "c-configmap", &resource)).await.is_err());
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    hub.apply(&policy("PropagationPolicy", "all", all, to(&["member1"]))).await?;
    world.binding(&settings, "the hub's own is there, with its status", applied).await?;
    let binding = super::super::binding::key_of(&settings, |_| false);
    let patch = json!({"metadata": {"annotations": {"atoll.dev/holders": ""}, "finalizers": []}});
    let changed =
        bob.of(&binding).await?.patch(&binding.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    ensure!(changed.is_err(), "{changed:?}");
    let patch = Patch::Merge(json!({"status": {"conditions": []}}));
    let changed = bob.of(&binding).await?.patch_status(&binding.name, &PatchParams::default(), &patch).await;
    ensure!(changed.is_err(), "{changed:?}");
    Ok(())
}

#[tokio::test]
async fn a_forged_binding_copies_nothing_and_deletes_nothing_after_a_restart_either() -> Outcome {
    let mut world = World::start(1).await?;
    world.hub.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})).await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "default"},
        "stringData": {"k": "v"}});
    let keys = world.hub.apply(&secret).await?;
    let of = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "keys"});
    let admin =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "cluster-admin"});
    // A copy that the hub once made, and whose template is no more: it goes only by what the hub remembers.
    let mut old = config_map("default", "old", &json!({"a": "1"}));
    old["metadata"]["labels"]["atoll.dev/propagated-by"] = "hub-1".into(); // the hub's uid here
    let old = world.member(1).apply(&old).await?;
    let of_old = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "old"});
    unguarded(&world.hub).await?;
    for (kind, namespace, name, resource) in [
        ("ResourceBinding", "mine", "keys-secret", &of),
        ("ResourceBinding", "default", "keys-secret", &of),
        ("ResourceBinding", "default", "old-configmap", &of_old),
        ("ClusterResourceBinding", "", "cluster-admin-clusterrole", &admin),
    ] {
        world.hub.create(forged(kind, namespace, name, resource)).await?;
    }
    told(&world.hub, "keys-secret", "nothing is copied or deleted").await?;
    for round in ["one", "two"] {
        at_work(&world, round).await?;
        ensure!(world.member(1).get(&keys).await?.is_null(), "a Secret was copied");
        ensure!(!world.member(1).get(&old).await?.is_null(), "a copy was deleted");
        world.restart().await;
        unguarded(&world.hub).await?;
    }
    // Honest: the hub's own takes the place of the forged one, and is its memory from then on.
    let all = json!([{"apiVersion": "v1", "kind": "Secret", "name": "keys"}]);
    world.hub.apply(&policy("PropagationPolicy", "keys", all, to(&["member1"]))).await?;
    world.member(1).has(&keys).await?;
    let own = world.binding(&keys, "it is fully applied", applied).await?;
    ensure!(own["metadata"]["annotations"]["atoll.dev/seal"].is_string(), "{own:#}");
    world.tasks.shutdown().await;
    world.hub.delete(&keys).await?;
    world.restart().await;
    world.member(1).lacks(&keys).await
}

#[tokio::test]
async fn an_old_binding_that_is_put_back_moves_nothing() -> Outcome {
    let mut world = World::start(2).await?;
    unguarded(&world.hub).await?;
    let settings = world.hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    world.hub.apply(&policy("PropagationPolicy", "all", all.clone(), to(&["member1"]))).await?;
    let old = world.binding(&settings, "it is fully applied", applied).await?;
    world.hub.apply(&policy("PropagationPolicy", "all", all, to(&["member2"]))).await?;
    world.member(1).lacks(&settings).await?;
    world
        .binding(&settings, "it has moved", |found| {
            applied(found) && found["metadata"]["annotations"]["atoll.dev/holders"] == "member2"
        })
        .await?;
    world.tasks.shutdown().await;
    let binding = super::super::binding::key_of(&settings, |_| false);
    let patch = json!({"metadata": {"annotations": old["metadata"]["annotations"]}, "spec": old["spec"]});
    let api = world.hub.of(&binding).await?;
    api.patch(&binding.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    let before = world.member(2).get(&settings).await?;
    world.restart().await;
    world
        .binding(&settings, "it is written anew", |found| {
            found["metadata"]["annotations"]["atoll.dev/holders"] == "member2" && applied(found)
        })
        .await?;
    ensure!(world.member(1).get(&settings).await?.is_null(), "it went back");
    let after = world.member(2).get(&settings).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was deleted in between");
    Ok(())
}

#[tokio::test]
async fn an_override_cannot_give_its_author_more_rights() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    let role = hub
        .apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}))
        .await?;
    let roles = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "reader"}]);
    hub.apply(&policy("PropagationPolicy", "roles", roles, to(&["member1"]))).await?;
    one.has(&role).await?;
    let more = |value: Value| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "more", "namespace": "default",
                "annotations": {"atoll.dev/author": "{\"username\":\"root\",\"groups\":[\"system:masters\"]}"}},
            "spec": {"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}],
                "overrideRules": [{"overriders": {"plaintext": [
                    {"path": "/rules/0/verbs", "operator": "replace", "value": value}]}}]}})
    };
    // He may write roles, with what he has himself.
    may(hub, "bob", &json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["get", "create", "update"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]))
    .await?;
    let bob = hub.used_by("bob", &[]);
    bob.apply(&more(json!(["*"]))).await?;
    world
        .binding(&role, "it says why", |found| {
            let message = condition(found, "FullyApplied")["message"].as_str().unwrap_or_default().to_owned();
            message.contains("default/more does not count") && message.contains("bob")
        })
        .await?;
    told(hub, "more", "could not do this").await?;
    ensure!(one.get(&role).await?["rules"][0]["verbs"] == json!(["get"]));
    // Honest: what he has himself.
    bob.apply(&more(json!(["get", "list"]))).await?;
    one.becomes(&role, "his own rights", |found| found["rules"][0]["verbs"] == json!(["get", "list"]))
        .await?;
    // And what an administrator writes.
    hub.apply(&more(json!(["*"]))).await?;
    one.becomes(&role, "all rights", |found| found["rules"][0]["verbs"] == json!(["*"])).await?;
    Ok(())
}

#[tokio::test]
async fn an_override_loses_what_its_author_could_no_longer_make() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    let reader = |verbs: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader", "namespace": "default", "labels": {"round": "1"}},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]})
    };
    let role = hub.apply(&reader(json!(["get"]))).await?;
    let roles = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "reader"}]);
    hub.apply(&policy("PropagationPolicy", "roles", roles, to(&["member1"]))).await?;
    // He keeps the right to roles all the time; what he may put into them goes.
    let rules = |verbs: Value| {
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["get", "create", "update"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])
    };
    may(hub, "bob", &rules(json!(["get", "list"]))).await?;
    hub.used_by("bob", &[])
        .apply(&json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "more", "namespace": "default"},
            "spec": {"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}],
                "overrideRules": [{"overriders": {"plaintext": [
                    {"path": "/rules/0/verbs", "operator": "replace", "value": ["get", "list"]}]}}]}}))
        .await?;
    one.becomes(&role, "what he may", |found| found["rules"][0]["verbs"] == json!(["get", "list"])).await?;
    may(hub, "bob", &rules(json!(["get"]))).await?;
    world
        .binding(&role, "it says why", |found| {
            let message = condition(found, "FullyApplied")["message"].as_str().unwrap_or_default().to_owned();
            message.contains("default/more does not count") && message.contains("bob")
        })
        .await?;
    ensure!(
        one.get(&role).await?["rules"][0]["verbs"] == json!(["get", "list"]),
        "copies that are there stay"
    );
    Ok(())
}

#[tokio::test]
async fn a_policy_brings_nothing_that_its_author_may_not_have() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    may(hub, "bob", &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])).await?;
    let bob = hub.used_by("bob", &[]);
    let keys = hub
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "default"},
            "stringData": {"k": "v"}}))
        .await?;
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let both = json!([{"apiVersion": "v1", "kind": "Secret", "name": "keys"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    bob.apply(&policy("PropagationPolicy", "both", both.clone(), to(&["member1"]))).await?;
    one.has(&settings).await?; // Honest.
    told(hub, "both", "they may not get secrets").await?;
    ensure!(one.get(&keys).await?.is_null());
    // The same from one who may.
    hub.apply(&policy("PropagationPolicy", "theirs", both, to(&["member1"]))).await?;
    one.has(&keys).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_without_a_stamp_changes_nothing_and_says_so() -> Outcome {
    let world = World::start(2).await?;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    let policy_key = hub.apply(&policy("PropagationPolicy", "all", all, to(&["member1"]))).await?;
    one.has(&settings).await?;
    // As one of a hub from before there were stamps.
    let as_hub = Cluster(hub.as_hub(), hub.1.clone());
    let off = json!({"metadata": {"annotations": {"atoll.dev/author": null}}});
    as_hub.of(&policy_key).await?.patch("all", &PatchParams::default(), &Patch::Merge(off)).await?;
    told(hub, "all", "nobody knows who wrote it").await?;
    let copy = one.get(&settings).await?;
    ensure!(!copy.is_null() && two.get(&settings).await?.is_null(), "copies stay where they are");
    // Touched by a user, it is theirs.
    let touch = json!({"metadata": {"labels": {"touched": "yes"}}});
    hub.of(&policy_key).await?.patch("all", &PatchParams::default(), &Patch::Merge(touch)).await?;
    world
        .binding(&settings, "the policy has it again", |found| {
            found["metadata"]["annotations"]["propagationpolicy.karmada.io/name"] == "all"
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_hubs_own_namespace_is_never_propagated() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    one.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "atoll-system"}}))
        .await?;
    let everything = json!([{"apiVersion": "v1", "kind": "Secret"}]);
    hub.apply(&policy("ClusterPropagationPolicy", "everything", everything, json!({}))).await?;
    let theirs = hub
        .apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}),
        )
        .await?;
    one.has(&theirs).await?;
    let seal = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "atoll-seal", "namespace": "atoll-system"}});
    let seal = ObjectKey::of(&seal).unwrap();
    ensure!(!hub.get(&seal).await?.is_null() && one.get(&seal).await?.is_null());
    Ok(())
}
