"""What comes with a request: its query and its body, bounded before they are read, checked before anybody uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_origin
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict
from pydantic import BaseModel, ValidationError

from services.console.contract.problems import Fault, Problem, bad_request
from services.console.http.memory_budget import Share
from services.outside.document import BadDocument, read_json

DEEPEST = 32  # lists and objects in one another
MOST_PARTS = 20_000  # values of a document: a text may be long, but what is made of many costs far more than its octets
MOST_FAULTS = 100  # that are told
SILENT_S = 30.0  # between two pieces of a body
LARGE = 64 << 10  # octets that are no longer worked on within a millisecond or two
OPENING = (b"[", b"{", b",")
WorkT = TypeVar("WorkT")
STRUCTURED = ("application/json",)


def too_large(longest: int) -> Problem:
    return Problem(
        413, "too_large", f"the body may have at most {longest:,} octets", headers={"Connection": "close"}
    )


def must_be_plain(request: web.Request) -> None:
    """Raises Problem 415 for a body that is packed: what is small on its way may be huge when it has come."""
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        text = f"send it as it is, without Content-Encoding: {coding!r} is not taken"
        raise Problem(415, "unsupported_media_type", text, headers={"Accept-Encoding": "identity"})


async def read_body(request: web.Request, longest: int, share: Share) -> bytes:
    """Raises Problem: one that says how long it is and is too long is not read at all; 503 where memory is short."""
    if request.content_length is not None and request.content_length > longest:
        raise too_large(longest)
    body = bytearray()
    while chunk := await _next(request):
        if len(body) + len(chunk) > longest:
            raise too_large(longest)
        share.take(len(chunk))
        body += chunk
    return bytes(body)


async def _next(request: web.Request) -> bytes:
    """What has come; b"" at its end. Raises Problem 408."""
    try:
        async with asyncio.timeout(SILENT_S):
            return await request.content.readany()
    except TimeoutError:
        text = f"nothing more of the body came for {SILENT_S:.0f} s"
        raise Problem(408, "too_slow", text, headers={"Connection": "close"}) from None


async def read_document(request: web.Request, model: Any, longest: int, share: Share) -> Any:
    """What `model` makes of the body. Raises Problem: 413, 415; 400 for no JSON, 422 for no such model."""
    if request.content_type not in STRUCTURED:
        text = "send application/json"
        raise Problem(415, "unsupported_media_type", text, headers={"Accept-Post": "application/json"})
    body = await read_body(request, longest, share)
    return await aside(len(body), lambda: checked(model, parse(body)))


async def aside(octets: int, work: Callable[[], WorkT]) -> WorkT:
    """What takes long where there are many octets is done in a thread, and others are answered in between.

    Known weakness: they wait for each step that Python does in one go, of 16 MiB as JSON some 60 to 250 ms.
    """
    return await asyncio.to_thread(work) if octets > LARGE else work()


def parse(body: bytes) -> Any:
    """Raises Problem."""
    if has_more_parts(body, MOST_PARTS):
        raise bad_request(f"the body has more than {MOST_PARTS:,} values")
    try:
        found = read_json(body)
    except BadDocument as error:
        raise bad_request(f"the body is no JSON: {error}") from None
    _check(found, DEEPEST)
    return found


def has_more_parts(body: bytes, most: int) -> bool:
    """Whether a JSON text has more lists, objects and commas than so many, known before anything is made of it."""
    if (
        sum(map(body.count, OPENING)) <= most
    ):  # those within texts are counted, too: mostly that is all there is to do
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")  # quotes that are left begin or end a text
    if bare.count(b'"') > 4 * (most + 1):  # a name and a text to each comma
        return True
    outside = b"".join(bare.split(b'"')[::2])
    return sum(map(outside.count, OPENING)) > most


def _check(value: Any, left: int) -> None:
    """Not too deep, and no text that is none: half a character of an escape could be written nowhere."""
    if left == 0:
        raise bad_request(f"the body has more than {DEEPEST} levels")
    match value:
        case str():
            try:
                value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise bad_request("the body has half a character in an escape") from None
        case dict():
            for name, each in value.items():
                _check(name, left)
                _check(each, left - 1)
        case list():
            for each in value:
                _check(each, left - 1)


def checked(model: type[BaseModel], found: Any) -> Any:
    """Raises Problem 422."""
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise Problem(422, "invalid", "the body is not what this route takes", faults_of(error)) from None


def read_query(raw: str, model: type[BaseModel]) -> Any:
    """raw: as it stands on the wire, where octets need be no UTF-8.

    Raises Problem 400; a name that is not known is one that was mistyped.
    """
    query = MultiDict(parse_qsl(raw, keep_blank_values=True, errors="surrogateescape"))
    lists = {
        field.alias or name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is tuple
    }
    given: dict[str, Any] = {}
    for name in dict.fromkeys(query):
        values = query.getall(name)
        if name not in lists and len(values) > 1:
            raise bad_request(f"{name} is said twice", [(name, "may be said once")])
        given[name] = tuple(values) if name in lists else values[0]
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise bad_request("the query is not what this route takes", faults_of(error)) from None


def faults_of(error: ValidationError) -> list[Fault]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(_place(fault), _said(fault)) for fault in found[:MOST_FAULTS]]


def _place(fault: Mapping[str, Any]) -> str:
    return ".".join(str(part) for part in fault["loc"])


def _said(fault: Mapping[str, Any]) -> str:
    return str(fault["msg"]).removeprefix("Value error, ")
