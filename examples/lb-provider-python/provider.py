"""A provider of load balancers that only hands out addresses (of 203.0.113.0/24, which is for documentation).

Replace what Addresses does by calls of your cloud. Run it with `./run 127.0.0.1:7071`, and lead the hub to
grpc://127.0.0.1:7071.
"""

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


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7071"
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    rpc.add_ProviderServicer_to_server(Addresses(), server)
    port = server.add_insecure_port(address)
    server.start()
    host = address.rsplit(":", 1)[0]
    print(f"listening on {host}:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
