"""Write `.rqprc` to a ConfigMap, for pods of RQP/cast programs (rqp_cast.md 1.1)."""

from __future__ import annotations

from typing import Any

from penstock_operator.cluster.api import Api, ApiError

FILE = "rqprc"  # key in the ConfigMap


class Rqprc:
    """The ConfigMap with `.rqprc`."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        """Select the ConfigMap; name '' disables it."""
        self._api = api
        self._namespace = namespace
        self._name = name

    async def keep(self, text: str) -> None:
        """Write the text if it has changed. Raises ApiError."""
        if not self._name:
            return
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{self._name}"
        if await self._found(path) == text:
            return
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "data": {FILE: text},
        }
        await self._api.apply(path, document)

    async def _found(self, path: str) -> str | None:
        try:
            found = await self._api.call("GET", path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        text = (found.get("data") or {}).get(FILE)
        return None if text is None else str(text)
