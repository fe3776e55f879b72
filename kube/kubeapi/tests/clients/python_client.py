"""The Python client of Kubernetes lists, watches and patches. Wants KUBECONFIG and NAME (a namespace to make)."""

import os
import threading
import time

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

name = os.environ["NAME"]
config.load_kube_config(os.environ["KUBECONFIG"])
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()
extensions = client.ApiextensionsV1Api()


def config_map(called, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=called, labels={"of": "python"}), data=data)


core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
assert client.VersionApi().get_code().minor == "36"

# Lists, whole and in pages.
for number in range(5):
    core.create_namespaced_config_map(name, config_map(f"map-{number}", number=str(number)))
assert len(core.list_namespaced_config_map(name).items) == 5
pages, token = [], None
while True:
    page = core.list_namespaced_config_map(name, limit=2, _continue=token)
    pages.append([item.metadata.name for item in page.items])
    token = page.metadata._continue
    if not token:
        break
assert pages == [["map-0", "map-1"], ["map-2", "map-3"], ["map-4"]], pages
assert len(core.list_config_map_for_all_namespaces(label_selector="of=python").items) >= 5

# Watches: what is there, then what happens.
listed = core.list_namespaced_config_map(name)
seen = []


def follow():
    events = watch.Watch().stream(
        core.list_namespaced_config_map, name, resource_version=listed.metadata.resource_version, timeout_seconds=30
    )
    for event in events:
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 3:
            return


follower = threading.Thread(target=follow)
follower.start()
core.create_namespaced_config_map(name, config_map("late", a="1"))
core.patch_namespaced_config_map("late", name, {"data": {"b": "2"}})
core.delete_namespaced_config_map("late", name)
follower.join(timeout=40)
assert seen == [("ADDED", "late"), ("MODIFIED", "late"), ("DELETED", "late")], seen

# Patches: strategic (its default for built-in kinds), JSON (a list), merge (custom objects).
patched = core.patch_namespaced_config_map("map-0", name, {"data": {"number": None, "patched": "yes"}})
assert patched.data == {"patched": "yes"}, patched.data
patched = core.patch_namespaced_config_map("map-0", name, [{"op": "add", "path": "/data/more", "value": "1"}])
assert patched.data == {"patched": "yes", "more": "1"}, patched.data
container = client.V1Container(name="c", image="example/c:1")
template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={"app": "d"}), spec=client.V1PodSpec(containers=[container])
)
apps.create_namespaced_deployment(
    name,
    client.V1Deployment(
        metadata=client.V1ObjectMeta(name="d"),
        spec=client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels={"app": "d"}), template=template),
    ),
)
change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example/c:2"}]}}}}
assert apps.patch_namespaced_deployment("d", name, change).spec.template.spec.containers[0].image == "example/c:2"
assert apps.patch_namespaced_deployment_scale("d", name, {"spec": {"replicas": 3}}).spec.replicas == 3

# Refusals come as they should.
for refused, status, reason in [
    (lambda: core.read_namespaced_config_map("nothing", name), 404, "NotFound"),
    (lambda: core.create_namespaced_config_map(name, config_map("map-0")), 409, "AlreadyExists"),
    (lambda: core.create_namespaced_config_map(name, config_map("Bad Name")), 422, "Invalid"),
]:
    try:
        refused()
        raise SystemExit(f"{reason} was wanted")
    except ApiException as error:
        assert error.status == status and reason in error.body, error

# Custom objects.
group = f"{name}.contract.test"
schema = client.V1JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
extensions.create_custom_resource_definition(
    client.V1CustomResourceDefinition(
        metadata=client.V1ObjectMeta(name=f"gizmos.{group}"),
        spec=client.V1CustomResourceDefinitionSpec(
            group=group,
            scope="Namespaced",
            names=client.V1CustomResourceDefinitionNames(plural="gizmos", kind="Gizmo"),
            versions=[
                client.V1CustomResourceDefinitionVersion(
                    name="v1",
                    served=True,
                    storage=True,
                    schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
                )
            ],
        ),
    )
)
deadline = time.monotonic() + 30
while True:
    status = extensions.read_custom_resource_definition(f"gizmos.{group}").status
    if any(c.type == "Established" and c.status == "True" for c in (status and status.conditions) or []):
        break
    assert time.monotonic() < deadline, "never established"
    time.sleep(0.1)
gizmo = {"apiVersion": f"{group}/v1", "kind": "Gizmo", "metadata": {"name": "g"}, "spec": {"size": 1}}
while True:
    try:
        custom.create_namespaced_custom_object(group, "v1", name, "gizmos", gizmo)
        break
    except ApiException as error:
        # A real server serves a kind a little after it is established.
        if error.status != 404 or time.monotonic() > deadline:
            raise
        time.sleep(0.1)
patched = custom.patch_namespaced_custom_object(group, "v1", name, "gizmos", "g", {"spec": {"size": 2}})
assert patched["spec"]["size"] == 2, patched
assert len(custom.list_namespaced_custom_object(group, "v1", name, "gizmos")["items"]) == 1

extensions.delete_custom_resource_definition(f"gizmos.{group}")
core.delete_namespace(name)
print("python: lists, watches, patches")
