"""Read and validate queries and bodies of requests, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, get_origin
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict
from pydantic import BaseModel, ValidationError

from services.console.contract.problems import Fault, Problem, bad_request
from services.console.http.memory_budget import Share
from services.outside.document import BadDocument, read_json

MAX_DEPTH = 32  # nested lists and objects
MAX_VALUES = 20_000  # of a document: many small values take far more memory than their octets
MAX_FAULTS = 100  # reported
BODY_TIMEOUT_S = 30.0  # between two chunks
LARGE = 64 << 10  # octets; more takes longer than a millisecond or two to parse
OPENING = (b"[", b"{", b",")
WorkT = TypeVar("WorkT")
STRUCTURED = ("application/json",)


def too_large(longest: int) -> Problem:
    """Return a Problem 413."""
    return Problem(
        413, "too_large", f"the body may have at most {longest:,} octets", headers={"Connection": "close"}
    )


def reject_compressed(request: web.Request) -> None:
    """Raise Problem 415 for a compressed body, which may expand without bound."""
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        text = f"Content-Encoding {coding!r} is not supported: send the body uncompressed"
        raise Problem(415, "unsupported_media_type", text, headers={"Accept-Encoding": "identity"})


async def read_body(request: web.Request, longest: int, share: Share) -> bytes:
    """Read a body. Raises Problem 413, 503 if the memory budget is used up."""
    if request.content_length is not None and request.content_length > longest:
        raise too_large(longest)
    body = bytearray()
    while chunk := await _next_chunk(request):
        if len(body) + len(chunk) > longest:
            raise too_large(longest)
        share.take(len(chunk))
        body += chunk
    return bytes(body)


async def _next_chunk(request: web.Request) -> bytes:
    """Return the data received, or b"" at the end. Raises Problem 408."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.content.readany()
    except TimeoutError:
        text = f"no data of the body for {BODY_TIMEOUT_S:.0f} s"
        raise Problem(408, "too_slow", text, headers={"Connection": "close"}) from None


async def read_document(request: web.Request, model: Any, longest: int, share: Share) -> Any:
    """Read and validate a JSON body. Raises Problem: 413, 415, 400 for invalid JSON, 422 for another schema."""
    if request.content_type not in STRUCTURED:
        text = "Content-Type must be application/json"
        raise Problem(415, "unsupported_media_type", text, headers={"Accept-Post": "application/json"})
    body = await read_body(request, longest, share)
    return await in_thread_if_large(len(body), lambda: validate(model, parse(body)))


async def in_thread_if_large(octets: int, work: Callable[[], WorkT]) -> WorkT:
    """Run the work in a thread if it is on many octets, so that other requests are served meanwhile.

    Known weakness: they wait while Python holds the GIL, for 16 MiB of JSON 60 to 250 ms.
    """
    return await asyncio.to_thread(work) if octets > LARGE else work()


def parse(body: bytes) -> Any:
    """Parse JSON within the limits of depth and number of values. Raises Problem 400."""
    if has_more_values(body, MAX_VALUES):
        raise bad_request(f"the body has more than {MAX_VALUES:,} values")
    try:
        found = read_json(body)
    except BadDocument as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None
    _check(found, MAX_DEPTH)
    return found


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether a JSON text has more lists, objects and commas than `most`, without parsing it."""
    if sum(map(body.count, OPENING)) <= most:  # including those within strings; mostly this suffices
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")  # the remaining quotes delimit strings
    if bare.count(b'"') > 4 * (most + 1):  # a name and a string per comma
        return True
    outside = b"".join(bare.split(b'"')[::2])
    return sum(map(outside.count, OPENING)) > most


def _check(value: Any, left: int) -> None:
    """Check the depth, and reject unpaired surrogates, which cannot be encoded. Raises Problem 400."""
    if left == 0:
        raise bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")
    match value:
        case str():
            try:
                value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise bad_request("the body has an unpaired surrogate in an escape") from None
        case dict():
            for name, each in value.items():
                _check(name, left)
                _check(each, left - 1)
        case list():
            for each in value:
                _check(each, left - 1)


def validate(model: type[BaseModel], found: Any) -> Any:
    """Validate a document. Raises Problem 422."""
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise Problem(
            422, "invalid", "the body does not match the schema of this route", faults_of(error)
        ) from None


def read_query(raw: str, model: type[BaseModel]) -> Any:
    """Parse and validate a query. raw: as on the wire. Raises Problem 400, also for unknown names."""
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
            raise bad_request(f"query parameter {name} is given twice", [(name, "must be given once")])
        given[name] = tuple(values) if name in lists else values[0]
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise bad_request("the query does not match the parameters of this route", faults_of(error)) from None


def faults_of(error: ValidationError) -> list[Fault]:
    """Return the path and message of each invalid field."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        (".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, "))
        for fault in found[:MAX_FAULTS]
    ]
