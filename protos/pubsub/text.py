"""Encode bodies of queues as text that fits into a line (pubsub.md 5.3)."""

from protos.pubsub.grammar import Charset, is_message

# Python's own escaping works at C speed but writes a tab as `\t` and leaves 127: so these pass through it as characters
# beyond any byte. So do backslashes: afterwards each backslash begins an escape.
_DETOURS = [
    ("\t", "\u0100", rb"\u0100", rb"\x09"),
    ("\x7f", "\u0101", rb"\u0101", b"\x7f"),
    ("\\", "\u0102", rb"\u0102", rb"\\"),  # the last one: it brings backslashes back
]


def escape(body: bytes, charset: Charset) -> bytes:
    r"""Return `body` itself if it is a legal Message, else with `\\`, `\n`, `\r`, `\xNN` for other bytes.

    One way only: a legal Message is never changed, so one that holds a backslash looks as if it had been escaped.
    """
    return body if is_message(body, charset) else _escaped(body)


def _escaped(body: bytes) -> bytes:
    text = body.decode("latin-1")
    for character, substitute, _, _ in _DETOURS:
        text = text.replace(character, substitute)
    result = text.encode("unicode_escape")
    for _, _, spelled, wanted in _DETOURS:
        result = result.replace(spelled, wanted)
    return result
