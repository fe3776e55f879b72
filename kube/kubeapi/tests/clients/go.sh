#!/usr/bin/env bash
# A Go program with client-go, built under target/. Wants KUBECONFIG, NAME and TARGET (target/).
set -euo pipefail
cd "$(dirname "$0")/go"
(
  flock 9
  GOFLAGS=-mod=readonly GOTOOLCHAIN=local go build -o "$TARGET/go-client" .
) 9>"$TARGET/go-client.lock"
exec "$TARGET/go-client"
