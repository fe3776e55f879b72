#!/usr/bin/env bash
# The Python `kubernetes` package, in a virtual environment under target/. Runs the script that is
# named, python_client.py otherwise. Wants KUBECONFIG, NAME and TARGET (target/).
set -euo pipefail
cd "$(dirname "$0")"
venv=$TARGET/python-client
(
  # Two servers are tested side by side: one makes it, the other waits.
  flock 9
  if ! "$venv/bin/python" -c 'import kubernetes' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check kubernetes==36.0.3
  fi
) 9>"$TARGET/python-client.lock"
exec "$venv/bin/python" "${1:-python_client.py}"
