"""Both RQP/cast agents as test doubles, operated step by step, without code of the edge."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

from protos.rqp_cast import (
    AcceptReceiverMsg,
    AcceptSenderMsg,
    DataMsg,
    EndTransmissionMsg,
    Quality,
    QuestionMsg,
    Result,
    accept_receiver_reader,
    accept_sender_reader,
    encode_accept_receiver,
    encode_accept_sender,
    encode_data,
    encode_end_transmission,
    encode_question,
    encode_record,
    end_transmission_reader,
    parse_question,
)
from tests.live import PATIENCE_S
from tests.rqp.cast.net import HERE, KEY, THERE, Net


class Hands:
    """A machine operated by a test; its sockets are closed at its end."""

    def __init__(self, net: Net, host: str, other: str) -> None:
        """Create a machine. other: the address of the machine that it speaks to."""
        self.net = net
        self.host = host
        self.other = other
        self._open: list[socket.socket] = []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._open:
            sock.close()

    def listen(self, port: int = 0) -> socket.socket:
        sock = self._opened(socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.host, port))
        sock.listen(16)
        return sock

    def datagrams(self, port: int = 0) -> socket.socket:
        sock = self._opened(socket.SOCK_DGRAM)
        sock.bind((self.host, port))
        return sock

    async def connect(self, port: int, host: str = "") -> socket.socket:
        """Connect to the other machine, from `host`."""
        sock = self._opened(socket.SOCK_STREAM)
        sock.bind((host or self.host, 0))
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.get_running_loop().sock_connect(sock, (self.other, port))
        return sock

    async def say(self, port: int, data: bytes, host: str = "") -> None:
        with await self.connect(port, host) as sock:
            await asyncio.get_running_loop().sock_sendall(sock, data)

    async def accept(self, listening: socket.socket) -> socket.socket:
        async with asyncio.timeout(PATIENCE_S):
            sock, _ = await asyncio.get_running_loop().sock_accept(listening)
        self._open.append(sock)
        return sock

    async def read(self, listening: socket.socket, reader: Any) -> Any:
        """Read the one message of the next connection."""
        with await self.accept(listening) as sock:
            while (message := reader.receive(await self.octets(sock))) is None:
                continue
            return message

    async def octets(self, sock: socket.socket) -> bytes:
        """Return some octets, or b'' at the end."""
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.get_running_loop().sock_recv(sock, 1 << 20)

    async def is_closed(self, sock: socket.socket) -> bool:
        """Wait until the other side closes a silent connection; return whether it did."""
        with contextlib.suppress(ConnectionError):
            return await self.octets(sock) == b""
        return True

    def _opened(self, kind: socket.SocketKind) -> socket.socket:
        sock = socket.socket(socket.AF_INET, kind)
        sock.setblocking(False)
        self._open.append(sock)
        return sock


class HandSender(Hands):
    """A sending agent at 127.0.0.1 that asks the edge at 127.0.0.2."""

    def __init__(self, net: Net, host: str = HERE, other: str = THERE) -> None:
        super().__init__(net, host, other)
        self.findreceiver = self.listen(net.findreceiver_port)
        self.endtransmission = self.listen()
        self._questions = self.datagrams()

    def ask(self, key: int = KEY, address: str = "", host: str = "") -> None:
        """Send a question. host: the machine to ask instead of the other one."""
        self.throw(encode_question(QuestionMsg(address or self.host, key)), host)

    def throw(self, datagram: bytes, host: str = "") -> None:
        self._questions.sendto(datagram, (host or self.other, self.net.request_port))

    async def answer(self, omit_address: bool = False) -> AcceptSenderMsg:
        found = await self.read(self.findreceiver, accept_sender_reader(omit_address))
        assert isinstance(found, AcceptSenderMsg)
        return found

    async def asked(self, key: int = KEY) -> AcceptSenderMsg:
        """Send a question; return its answer."""
        self.ask(key)
        return await self.answer()

    def approval(self, id: int, quality: Quality) -> AcceptReceiverMsg:
        port = self.endtransmission.getsockname()[1] if quality is Quality.HIGH_QUALITY else 0
        return AcceptReceiverMsg(self.host, port, id, quality)

    async def approve(
        self, offer: AcceptSenderMsg, id: int = 99, quality: Quality = Quality.HIGH_QUALITY
    ) -> None:
        await self.say(offer.accept_port, encode_accept_receiver(self.approval(id, quality)))

    async def data(self, offer: AcceptSenderMsg, body: bytes, key: int = KEY) -> None:
        await self.say(offer.data_port, encode_data(DataMsg(self.host, key, encode_record(body))))

    async def end(self, omit_address: bool = False) -> EndTransmissionMsg:
        found = await self.read(self.endtransmission, end_transmission_reader(omit_address))
        assert isinstance(found, EndTransmissionMsg)
        return found

    async def send(self, body: bytes, id: int = 99) -> Result:
        """Send a certain message, with the whole exchange."""
        offer = await self.asked()
        await self.approve(offer, id)
        await self.data(offer, body)
        return (await self.end()).result

    async def send_uncertain(self, body: bytes) -> None:
        offer = await self.asked()
        await self.approve(offer, 0, Quality.LOW_QUALITY)
        await self.data(offer, body)


class HandReceiver(Hands):
    """A receiving agent at 127.0.0.2 that the edge at 127.0.0.1 asks."""

    def __init__(self, net: Net, host: str = THERE, other: str = HERE) -> None:
        super().__init__(net, host, other)
        self.questions = self.datagrams(net.request_port)
        self.accept_port = self.listen()
        self.data_port = self.listen()

    async def question(self) -> QuestionMsg:
        async with asyncio.timeout(PATIENCE_S):
            data = await asyncio.get_running_loop().sock_recv(self.questions, 64)
        return parse_question(data)

    def asked(self) -> int:
        """Return the number of unread questions."""
        number = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.questions.recv(64)
                number += 1
        return number

    async def offer(self, key: int = KEY, address: str | None = THERE, host: str = "") -> None:
        ports = self.accept_port.getsockname()[1], self.data_port.getsockname()[1]
        message = AcceptSenderMsg(address, ports[0], key, ports[1])
        await self.say(self.net.findreceiver_port, encode_accept_sender(message), host)

    async def approval(self, omit_address: bool = False) -> AcceptReceiverMsg:
        """Return the next approval, passing over offers that were declined."""
        reader = accept_receiver_reader(omit_address)
        while True:
            with await self.accept(self.accept_port) as sock:
                while octets := await self.octets(sock):
                    if (found := reader.receive(octets)) is not None:
                        return found

    async def is_declined(self) -> bool:
        """Return whether the next connection to accept_port ends without an octet."""
        with await self.accept(self.accept_port) as sock:
            return await self.octets(sock) == b""

    async def chosen(
        self, key: int = KEY, address: str | None = THERE, omit_address: bool = False
    ) -> AcceptReceiverMsg:
        """Run from a question to the approval; an expired question is replaced by the next."""
        approval = asyncio.ensure_future(self.approval(omit_address))
        question = asyncio.ensure_future(self.question())
        try:
            while not approval.done():
                await asyncio.wait((approval, question), return_when=asyncio.FIRST_COMPLETED)
                if question.done() and not approval.done():
                    question.result()
                    await self.offer(key, address)
                    question = asyncio.ensure_future(self.question())
            return approval.result()
        finally:
            approval.cancel()
            question.cancel()
            await asyncio.gather(approval, question, return_exceptions=True)

    async def data(self) -> bytes:
        """Return all octets of the data connection."""
        found = b""
        with await self.accept(self.data_port) as sock:
            while octets := await self.octets(sock):
                found += octets
        return found

    async def confirm(
        self, approval: AcceptReceiverMsg, result: Result, id: int | None = None, host: str = ""
    ) -> None:
        message = EndTransmissionMsg(self.host, approval.id if id is None else id, result)
        await self.say(approval.endtransmission_port, encode_end_transmission(message), host)

    async def receive(self, result: Result = Result.SUCCESS) -> bytes:
        """Receive a certain message with the whole exchange, send this result, and return its data."""
        approval = await self.chosen()
        data = await self.data()
        await self.confirm(approval, result)
        return data[12:]
