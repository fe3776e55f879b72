"""The Python client of Kubernetes runs commands in the pod `p`: it speaks v4.channel.k8s.io. Wants KUBECONFIG and NAME."""

import os

from kubernetes import client, config
from kubernetes.stream import stream

name = os.environ["NAME"]
config.load_kube_config(os.environ["KUBECONFIG"])
core = client.CoreV1Api()


def run(*command, **options):
    asked = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **options}
    return stream(core.connect_get_namespaced_pod_exec, "p", name, command=list(command), **asked)


assert run("echo", "a", "b") == "a b\n"

failing = run("exit", "3", _preload_content=False)
failing.run_forever(timeout=30)
assert failing.returncode == 3, failing.returncode

echo = run("cat", stdin=True, _preload_content=False)
for line in ["one", "two"]:
    echo.write_stdin(line + "\n")
    assert echo.readline_stdout(timeout=30) == line
echo.close()

# Without decoding, which this version of the package does not do for text.
log = core.read_namespaced_pod_log("p", name, tail_lines=1, _preload_content=False)
assert log.data == b"three\n", log.data
