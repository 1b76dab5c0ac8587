"""Run the example commands of a listener in bash: over plain TCP, over TLS, and with a client's certificate."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.kit.net import ListenerSettings, shell_example
from tests.kit.authority import Authority
from tests.kit.harness import Server

SEND = r'printf "\0\0\0\6Ehello"'


async def answer(server: Server, **settings: Any) -> str:
    """Return the output of the example command for this server. A client's certificate is filled in."""
    listener = ListenerSettings(host=server.host, port=server.port, **settings)
    command = shell_example(listener, SEND, "head -c9", show=" | tail -c5")
    if listener.tls is not None:
        files = {"CERTIFICATE": listener.tls.certificate, "KEY": listener.tls.key}
        command = " ".join(str(files.get(word, word)) for word in command.split(" "))
    shell = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    out, _ = await shell.communicate()
    return out.decode()


async def test_plain_listener_answers() -> None:
    async with Server() as server:
        assert await answer(server) == "hello"


@pytest.mark.parametrize("asks_for_certificate", [False, True])
async def test_tls_listener_answers(authority: Authority, asks_for_certificate: bool) -> None:
    tls = authority.mutual() if asks_for_certificate else authority.listener()
    async with Server(tls=tls) as server:
        assert await answer(server, tls=tls) == "hello"


def test_ipv6_address_of_a_tls_listener_is_in_brackets(authority: Authority) -> None:
    listener = ListenerSettings.model_validate({"host": "::1", "port": 7, "tls": authority.listener()})
    assert " -connect [::1]:7 " in shell_example(listener, SEND, "cat")
