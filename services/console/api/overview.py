"""The whole at a glance, and who one is."""

from __future__ import annotations

from services.console.core.route import Answer, Call


async def overview(call: Call) -> Answer:
    await call.console.live.look()
    return Answer(call.console.live.overview())


async def me(call: Call) -> Answer:
    return Answer({"who": call.who.who, "role": call.who.role, "auth": call.who.auth})
