"""A table of transitions as a Mermaid diagram."""

from enum import Enum

from protos.diagrams import mermaid


class Door(Enum):
    OPEN = "the door is open"
    SHUT = "the door is shut"


class Push(Enum):
    PUSH = "a push"
    PULL = "a pull"


DOORS = {Door.SHUT: {Push.PULL: Door.OPEN}, Door.OPEN: {Push.PUSH: Door.SHUT, Push.PULL: Door.OPEN}}


def test_every_move_is_an_arrow_and_the_first_state_is_where_it_begins() -> None:
    assert mermaid(DOORS) == (
        "stateDiagram-v2\n"
        "    [*] --> SHUT\n"
        "    SHUT --> OPEN: a pull\n"
        "    OPEN --> SHUT: a push\n"
        "    OPEN --> OPEN: a pull\n"
    )


def test_a_move_may_have_another_text() -> None:
    assert "    OPEN --> SHUT: PUSH\n" in mermaid(DOORS, {Push.PUSH: "PUSH"})
    assert mermaid(DOORS, {Push.PUSH: "a push"}) == mermaid(DOORS)
