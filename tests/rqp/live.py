"""RQP edges in the running loop with real sockets and a real store; checks that they release everything."""

from __future__ import annotations

from functools import partial
from typing import Any

from protos.rqp_mca import Profile
from services.kit.edge import Edge
from services.rqp.edge import EDGE, example, start
from services.rqp.name_resolver import LookUp
from services.rqp.service import RqpService
from services.rqp.settings import RqpSettings
from services.store import Queue, QueueSpec
from services.store.deadletters.dead_letters import DeadLetter, DeadLetters
from services.store.model.errors import QueueUnknown
from services.store.pipeline.async_client import AsyncClient
from tests.live import Live, until
from tests.rqp.mca.client import Client

NO_CAST = {"receives": False, "sends": False}
LISTENERS: dict[str, dict[str, Any]] = {"mca": {"port": 0}}
QUICK = {  # timeouts of a sending MCA, s: long enough for a busy machine
    "availability_timeout_s": 1.0,
    "request_timeout_s": 0.5,
    "data_timeout_s": 0.5,
    "first_pause_s": 0.05,
    "max_pause_s": 0.2,
}


class LiveEdge(Live[RqpSettings]):
    """`settings` are those under `edges.rqp`; `mca` overrides the short timeouts."""

    def __init__(
        self,
        url: str,
        mca: dict[str, Any] | None = None,
        look_up: LookUp | None = None,
        budget: int = 1 << 28,
        **settings: Any,
    ) -> None:
        edge = EDGE
        if look_up is not None:
            edge = Edge("rqp", RqpSettings, partial(start, look_up=look_up), example)
        fields = {"listeners": LISTENERS, "mca": {**QUICK, **(mca or {})}, "cast": NO_CAST, **settings}
        super().__init__(edge, url, fields, budget)

    async def start(self) -> LiveEdge:
        """Start it and wait until the store is reached."""
        await self.open()
        return self

    @property
    def service(self) -> RqpService:
        assert isinstance(self.running, RqpService)
        return self.running

    @property
    def address(self) -> str:
        host, port = self.places["mca"]
        return f"{host}:{port}"

    async def client(self, profile: Profile = Profile.PACKED) -> Client:
        client = await Client.connect(self.places["mca"], profile)
        self.adopt(client.close)
        return client

    # queues

    async def numbered(self, name: str, number: int, **spec: Any) -> Queue:
        """Declare a queue with an RQP/MCA number."""
        return await self.declare(name, **_numbered(number, **spec))

    async def heard_numbered(self, name: str, number: int, **spec: Any) -> Queue:
        """Declare such a queue and wait until the edge has found it; then it does not ask the store again."""
        heard: list[str] = []
        self.service.store.catalogue.watch(heard.append)
        queue = await self.numbered(name, number, **spec)
        await until(lambda: name in heard)
        return queue

    async def replace_numbered(self, name: str, number: int, **spec: Any) -> None:
        """Replace the document."""
        document = QueueSpec.model_validate(_numbered(number, **spec))
        await self.tools.catalogue.declare(name, document, "test", replace=True)

    async def remote(self, name: str, number: int = 7, **remote: Any) -> Queue:
        """Declare a transmission queue."""
        spec = remote.pop("spec", {})
        return await self.declare(name, remote={"protocol": "rqp-mca", "queueId": number, **remote}, **spec)

    async def replace_remote(self, name: str, number: int = 7, **remote: Any) -> None:
        """Change the document; other fields are as `remote` sets them."""
        spec = remote.pop("spec", {})
        fields = {"protocol": "rqp-mca", "queueId": number, **remote}
        await self.tools.catalogue.declare(
            name, QueueSpec.model_validate({"remote": fields, **spec}), "test", replace=True
        )

    async def put(self, queue: Queue, *bodies: bytes) -> None:
        await self.put_records(queue, *(len(body).to_bytes(4, "big") + body for body in bodies))

    async def put_records(self, queue: Queue, *records: bytes) -> None:
        async_client = AsyncClient(self.tools.open_domain(queue.domain).pipe)
        for first in range(0, len(records), 1000):
            assert await async_client.publish(queue, records[first : first + 1000], "test") == []

    async def bodies(self, queue: Queue) -> list[bytes]:
        """Return the bodies of ready messages."""
        found = await self.tools.get_domain(queue.domain).peek(queue, 1000)
        return [record[4:] for delivery in found for record in delivery.records()]

    async def dead(self, queue: Queue) -> list[DeadLetter]:
        letters = DeadLetters(self.tools.get_domain(queue.domain), queue)
        return [letter async for letter in letters.matching()]

    async def stats(self, queue: Queue) -> dict[str, Any]:
        return await self.tools.listing.stats(queue)

    async def is_empty(self, queue: Queue) -> bool:
        stats = await self.stats(queue)
        return bool(stats["ready"] == 0 and stats["in_flight"] == 0)

    async def condition(self, queue: Queue) -> str:
        return str((await self.stats(queue))["condition"])

    async def has_condition(self, queue: Queue, beginning: str) -> bool:
        assert beginning
        return (await self.condition(queue)).startswith(beginning)

    async def has_no_condition(self, queue: Queue) -> bool:
        return not await self.condition(queue)

    # the end

    async def check_nothing_is_left(self) -> None:
        """Drain, then check that nothing is leased, assigned or held, and that the counters are right."""
        await self.service.stop_taking()
        self.close_clients()
        await until(lambda: not self.connections())
        assert self.budget.total == 0, "input is still counted as held"
        assert self.output.total == 0, "output is still counted as held"
        async for queue in self.tools.listing.queues():
            await until(partial(self._is_free, queue))

    async def _is_free(self, queue: Queue) -> bool:
        try:
            stats = await self.tools.listing.stats(queue)
        except QueueUnknown:
            return True
        wrong = await self.tools.get_domain(queue.domain).tidy(queue)
        assert wrong is None or not any(wrong.values()), f"{queue.name!r}: counters are wrong by {wrong}"
        return bool(stats["in_flight"] == 0 and stats["leases"] == 0 and stats["reserved_by"] == "")


def _numbered(number: int, exclusive: bool = True, **spec: Any) -> dict[str, Any]:
    return {"bindings": {"rqpMca": {"queueId": number, "exclusive": exclusive}}, **spec}
