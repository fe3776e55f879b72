"""A provider of load balancers that only hands out addresses (of 203.0.113.0/24, which is for documentation).

Replace what Addresses does by calls of your cloud. On the hub's machine run it with `./run unix:///run/atoll/provider.sock`, and
`atoll hub --lb-provider` with the same. Elsewhere: `./run grpcs://0.0.0.0:7071 ca.crt provider.crt provider.key`, and `atoll hub
--lb-provider grpcs://HOST:7071 --lb-provider-ca ca.crt --lb-provider-cert hub.crt --lb-provider-key hub.key`. Each side shows a
certificate of ca.crt.
"""

import os
import sys
import threading
from concurrent import futures

import grpc
from atoll.lb.v1 import provider_pb2 as pb
from atoll.lb.v1 import provider_pb2_grpc as rpc


class Addresses(rpc.ProviderServicer):
    """Who has which last byte. Calls come again, so each only makes sure."""

    def __init__(self):
        self._lock = threading.Lock()
        self._given = {}

    @staticmethod
    def _status(last):
        return pb.Status(ingress=[pb.Ingress(ip=f"203.0.113.{last}")])

    def _make(self, request, context):
        key = request.key.SerializeToString(deterministic=True)
        with self._lock:
            if key not in self._given:
                free = set(range(1, 255)) - set(self._given.values())
                if not free:
                    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "all addresses are given away; delete a service")
                self._given[key] = min(free)
            last = self._given[key]
        name = f"{request.key.namespace}/{request.key.name}"
        print(f"{name}: 203.0.113.{last} to {len(request.spec.backends)} backends", flush=True)
        return self._status(last)

    def Get(self, request, context):
        with self._lock:
            last = self._given.get(request.key.SerializeToString(deterministic=True))
        return pb.GetResponse(status=None if last is None else self._status(last))

    def Ensure(self, request, context):
        return pb.EnsureResponse(status=self._make(request, context))

    def Update(self, request, context):
        return pb.UpdateResponse(status=self._make(request, context))

    def EnsureDeleted(self, request, context):
        with self._lock:
            self._given.pop(request.key.SerializeToString(deterministic=True), None)
        return pb.EnsureDeletedResponse()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    url, *files = sys.argv[1:] or ["unix:///tmp/atoll-provider/provider.sock"]
    scheme, _, address = url.partition("://")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    rpc.add_ProviderServicer_to_server(Addresses(), server)
    if scheme == "unix" and not files:
        os.umask(0o117)  # the owner and the group may call, nobody else
        server.add_insecure_port(f"unix:{address}")
    elif scheme == "grpcs" and len(files) == 3:
        ca, certificate, key = map(read, files)
        server.add_secure_port(
            address, grpc.ssl_server_credentials([(key, certificate)], root_certificates=ca, require_client_auth=True)
        )
    else:
        sys.exit("usage: run unix:///PATH | grpcs://ADDRESS:PORT CA CERTIFICATE KEY")
    server.start()
    print(f"listening on {url}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
