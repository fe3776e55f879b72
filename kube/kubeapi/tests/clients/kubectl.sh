#!/usr/bin/env bash
# Does with kubectl what people do with it, and checks what comes of it.
# Wants KUBECTL (the program), KUBECONFIG (an administrator's) and NAME (a namespace that is not there yet).
set -euo pipefail

work=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$work"' EXIT
# kubectl remembers what it discovers: not what another server said.
export HOME=$work
group=$NAME.contract.test

k() { "$KUBECTL" "$@"; }
kn() { k -n "$NAME" "$@"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
said() { # said TEXT COMMAND…: its output holds the text
  local want=$1 got
  shift
  got=$("$@" 2>&1) || fail "$* ended with $?: $got"
  [[ $got == *"$want"* ]] || fail "$*: wanted '$want' in: $got"
}
is() { # is TEXT COMMAND…: its output is the text
  local want=$1 got
  shift
  got=$("$@" 2>&1) || fail "$* ended with $?: $got"
  [[ $got == "$want" ]] || fail "$*: wanted '$want', got: $got"
}
refused() { # refused TEXT COMMAND…: it fails, and says so
  local want=$1 got
  shift
  if got=$("$@" 2>&1); then fail "$*: should have failed: $got"; fi
  [[ $got == *"$want"* ]] || fail "$*: wanted '$want' in: $got"
}
soon() { # soon FILE TEXT: the file holds the text before long
  for _ in $(seq 200); do
    if grep -q -- "$2" "$1"; then return; fi
    sleep 0.1
  done
  fail "'$2' never came: $(cat "$1")"
}

echo "- create"
said "namespace/$NAME created" k create namespace "$NAME"
said "configmap/settings created" kn create configmap settings --from-literal=colour=red --from-literal=size=5
said "secret/keys created" kn create secret generic keys --from-literal=password=hidden
said "serviceaccount/robot created" kn create serviceaccount robot
said "deployment.apps/web created" kn create deployment web --image=example/web:1 --replicas=2 --port=80
said "service/web created" kn create service clusterip web --tcp=80:8080
said "role.rbac.authorization.k8s.io/reader created" kn create role reader --verb=get,list --resource=configmaps
said "rolebinding.rbac.authorization.k8s.io/reader created" kn create rolebinding reader --role=reader --serviceaccount="$NAME:robot"
said "job.batch/once created" kn create job once --image=example/job:1
said "cronjob.batch/nightly created" kn create cronjob nightly --image=example/job:1 --schedule="0 3 * * *"
said "quota" kn create quota quota --hard=pods=10
said "ingress.networking.k8s.io/front created" kn create ingress front --rule="example.com/*=web:80"
said "poddisruptionbudget.policy/web created" kn create poddisruptionbudget web --selector=app=web --min-available=1
refused 'configmaps "settings" already exists' kn create configmap settings
[[ $(kn create token robot) == *.*.* ]] || fail "no token"

echo "- get"
said "settings   2      " kn get configmap settings
is configmap/settings kn get configmap settings -o name
is red kn get configmap settings -o "jsonpath={.data.colour}"
said '"colour": "red"' kn get configmap settings -o json
said 'colour: red' kn get configmap settings -o yaml
said "example/web:1" kn get deployment web -o wide
said "0/2" kn get deployments
said "$NAME " k get configmaps -A
is hidden bash -c '"$KUBECTL" -n "$NAME" get secret keys -o "jsonpath={.data.password}" | base64 -d'
is configmap/settings kn get configmaps --field-selector=metadata.name=settings -o name
is "" kn get configmaps --field-selector=metadata.name=other -o name
said 'configmap/settings' kn get configmap/settings secret/keys -o name
said "web" kn get all
refused 'configmaps "nothing" not found' kn get configmap nothing
refused "doesn't have a resource type" k get nonsense
said "COLOUR" kn get configmap settings -o custom-columns=COLOUR:.data.colour
is "keys" kn get secrets --sort-by=.metadata.name -o "jsonpath={.items[*].metadata.name}"

echo "- label, annotate"
said "labeled" kn label configmap settings tier=web
is configmap/settings kn get configmaps -l tier=web -o name
is configmap/settings kn get configmaps -l "tier in (web,db)" -o name
is "" kn get configmaps -l "tier!=web,tier" -o name
refused "--overwrite is false" kn label configmap settings tier=db
said "labeled" kn label configmap settings tier=db --overwrite
said "unlabeled" kn label configmap settings tier-
said "annotated" kn annotate configmap settings note="by hand"
is "by hand" kn get configmap settings -o "jsonpath={.metadata.annotations.note}"

echo "- watch"
kn get configmaps -w --output-watch-events >"$work/watch" 2>&1 &
soon "$work/watch" "ADDED *settings"
kn create configmap passing >/dev/null
soon "$work/watch" "ADDED *passing"
kn delete configmap passing >/dev/null
soon "$work/watch" "DELETED *passing"

echo "- apply by the client"
cat >"$work/app.yaml" <<YAML
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: $NAME
data:
  a: "1"
  b: "2"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
  namespace: $NAME
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - {name: one, image: "example/one:1", env: [{name: A, value: "1"}]}
      - {name: two, image: "example/two:1"}
YAML
said "configmap/app created" k apply -f "$work/app.yaml"
said "deployment.apps/app unchanged" k apply -f "$work/app.yaml"
sed -i -e '/b: "2"/d' -e 's|example/two:1|example/two:2|' "$work/app.yaml"
if k diff -f "$work/app.yaml" >"$work/diff"; then fail "diff sees nothing"; fi
grep -q '^-  b: "2"' "$work/diff" && grep -q '^+.*example/two:2' "$work/diff" || fail "$(cat "$work/diff")"
said "deployment.apps/app configured" k apply -f "$work/app.yaml"
is '{"a":"1"}' kn get configmap app -o "jsonpath={.data}"
is "example/one:1 example/two:2" kn get deployment app -o "jsonpath={.spec.template.spec.containers[*].image}"
k diff -f "$work/app.yaml" >"$work/diff" || fail "$(cat "$work/diff")"
sed -i -e '/name: two/d' "$work/app.yaml"
k apply -f "$work/app.yaml" >/dev/null
is "one" kn get deployment app -o "jsonpath={.spec.template.spec.containers[*].name}"
sed -e 's/kind: ConfigMap/kind: ConfigMap\ncolour: blue/' "$work/app.yaml" >"$work/strange.yaml"
refused 'unknown field "colour"' k apply -f "$work/strange.yaml"
k apply --prune -f "$work/app.yaml" -l never=there >/dev/null 2>&1 || true

echo "- apply by the server"
cat >"$work/served.yaml" <<YAML
apiVersion: v1
kind: ConfigMap
metadata: {name: served, namespace: $NAME}
data: {a: "1"}
YAML
said "configmap/served serverside-applied" k apply --server-side --field-manager=alice -f "$work/served.yaml"
sed -i 's/a: "1"/a: "2"/' "$work/served.yaml"
refused 'conflict with "alice": .data.a' k apply --server-side --field-manager=bob -f "$work/served.yaml"
said "serverside-applied" k apply --server-side --field-manager=bob --force-conflicts -f "$work/served.yaml"
is 2 kn get configmap served -o "jsonpath={.data.a}"
said "bob" kn get configmap served --show-managed-fields -o yaml
said "server dry run" kn apply --dry-run=server -f "$work/app.yaml"
if k diff --server-side --field-manager=bob -f "$work/served.yaml" >"$work/diff" 2>&1; then :; else fail "$(cat "$work/diff")"; fi

echo "- patch"
said "patched" kn patch configmap settings -p '{"data":{"size":"6"}}'
said "patched" kn patch configmap settings --type=merge -p '{"data":{"size":null,"shape":"round"}}'
said "patched" kn patch configmap settings --type=json -p '[{"op":"replace","path":"/data/colour","value":"blue"}]'
is '{"colour":"blue","shape":"round"}' kn get configmap settings -o "jsonpath={.data}"
said "patched" kn patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example/web:2"}]}}}}'
is "example/web:2" kn get deployment web -o "jsonpath={.spec.template.spec.containers[*].image}"
said "image updated" kn set image deployment/web web=example/web:3
said "scaled" kn scale deployment web --replicas=4
is 4 kn get deployment web -o "jsonpath={.spec.replicas}"

echo "- edit, replace"
printf '#!/bin/sh\nsed -i s/blue/green/ "$1"\n' >"$work/editor"
chmod +x "$work/editor"
EDITOR=$work/editor said "edited" kn edit configmap settings
is green kn get configmap settings -o "jsonpath={.data.colour}"
kn get configmap settings -o yaml | sed 's/green/grey/' >"$work/replaced.yaml"
said "replaced" kn replace -f "$work/replaced.yaml"
is grey kn get configmap settings -o "jsonpath={.data.colour}"

echo "- describe, explain, api-resources"
said "colour:" kn describe configmap settings
said "Pod Template:" kn describe deployment web
said "password:  6 bytes" kn describe secret keys
said "Status:       Active" k describe namespace "$NAME"
said "<map[string]string>" k explain configmap.data
said "restartPolicy" k explain deployment.spec.template.spec --recursive
said "RollingUpdate" k explain deployment.spec.strategy.type
said "deploy" k api-resources --api-group=apps
said "configmaps" k api-resources --namespaced=true -o name
said "apps/v1" k api-versions
said "Server Version: v1.36" k version

echo "- custom kinds"
cat >"$work/crd.yaml" <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.$group}
spec:
  group: $group
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, shortNames: [gz$RANDOM]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What is wanted of it.
            properties: {size: {type: integer, minimum: 1, description: How large it is.}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
YAML
said "created" k apply -f "$work/crd.yaml"
said "condition met" k wait --for=condition=Established --timeout=30s "crd/gizmos.$group"
cat >"$work/gizmo.yaml" <<YAML
apiVersion: $group/v1
kind: Gizmo
metadata: {name: big, namespace: $NAME}
spec: {size: 7}
YAML
for _ in $(seq 100); do
  if k apply -f "$work/gizmo.yaml" >"$work/out" 2>&1; then break; fi
  sleep 0.1
done
grep -q "created\|unchanged" "$work/out" || fail "$(cat "$work/out")"
said "big    7" kn get "gizmos.$group"
for _ in $(seq 200); do
  if k explain "gizmos.$group.spec.size" >"$work/out" 2>&1; then break; fi
  sleep 0.1
done
grep -q "How large it is." "$work/out" || fail "$(cat "$work/out")"
sed -i 's/size: 7/size: 0/' "$work/gizmo.yaml"
refused "should be greater than or equal to 1" k apply -f "$work/gizmo.yaml"
said "patched" kn patch "gizmos.$group" big --type=merge --subresource=status -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
said "condition met" kn wait --for=condition=Ready --timeout=10s "gizmos.$group/big"
said "condition met" kn wait --for=jsonpath='{.spec.size}'=7 --timeout=10s "gizmos.$group/big"

echo "- auth, config"
is yes k auth can-i create deployments
is yes kn auth can-i list configmaps --as="system:serviceaccount:$NAME:robot"
refused no kn auth can-i list secrets --as="system:serviceaccount:$NAME:robot"
said "configmaps" kn auth can-i --list --as="system:serviceaccount:$NAME:robot"
said "Groups" k auth whoami
said "certificate-authority-data: DATA+OMITTED" k config view
cp "$KUBECONFIG" "$work/robot"
robot() { KUBECONFIG=$work/robot k -n "$NAME" "$@"; }
robot config set-credentials robot --token="$(kn create token robot)" >/dev/null
robot config set-context --current --user=robot >/dev/null
is configmap/settings robot get configmap settings -o name
refused "is forbidden" robot get secrets
said "system:serviceaccount:$NAME:robot" robot auth whoami

echo "- delete"
kn patch configmap app --type=merge -p '{"metadata":{"finalizers":["example.com/wait"]}}' >/dev/null
kn delete configmap app --wait=true >"$work/deleted" 2>&1 &
deleting=$!
said "condition met" kn wait --for=jsonpath='{.metadata.deletionTimestamp}' --timeout=20s configmap/app
refused "timed out" kn wait --for=delete --timeout=1s configmap/app
kill -0 "$deleting" || fail "delete did not wait: $(cat "$work/deleted")"
kn patch configmap app --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
wait "$deleting" || fail "$(cat "$work/deleted")"
refused "not found" kn get configmap app
owner=$(kn get deployment web -o "jsonpath={.metadata.uid}")
for child in background orphaned; do
  kn create configmap "$child" >/dev/null
  kn patch configmap "$child" --type=merge -p "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\",\"uid\":\"$owner\"}]}}" >/dev/null
done
kn patch configmap orphaned --type=merge -p '{"metadata":{"ownerReferences":null}}' >/dev/null
said 'deployment.apps "web" deleted' kn delete deployment web --cascade=foreground
refused "not found" kn get deployment web
refused "not found" kn get configmap background
is configmap/orphaned kn get configmap orphaned -o name
said 'configmap "orphaned" deleted' kn delete configmap orphaned --cascade=orphan
said "deleted" kn delete -f "$work/served.yaml"
kn delete configmap served --ignore-not-found
refused 'configmaps "served" not found' kn delete configmap served
said "deleted" kn delete configmaps,secrets --all
is "" kn get secrets -o name
said "deleted" k delete -f "$work/crd.yaml"
said "namespace \"$NAME\" deleted" k delete namespace "$NAME" --timeout=60s
refused "not found" k get namespace "$NAME"

echo "kubectl: all of it works"
