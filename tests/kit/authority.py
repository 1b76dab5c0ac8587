"""Real certificates for the tests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trustme


@dataclass(frozen=True)
class Authority:
    """A separate certificate authority; `folder` has the files of the parties that it certifies."""

    folder: Path
    ca: trustme.CA

    @classmethod
    def create(cls, folder: Path, *names: str, is_intermediate: bool = False) -> Authority:
        """Create an authority. names: of the server, besides this machine's.

        is_intermediate: certified by a root that is in no file: `ca.pem` holds the intermediate alone.
        """
        authority = cls(folder, trustme.CA().create_child_ca() if is_intermediate else trustme.CA())
        authority.ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        authority.certify_server(*names)
        return authority

    def certify_server(self, *names: str, not_after: datetime | None = None) -> None:
        """Write a new certificate to the same files."""
        issued = self.ca.issue_cert("localhost", "127.0.0.1", *names, not_after=not_after)
        (self.folder / "chain.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(self.folder / "key.pem"))

    def listener(self, **more: Any) -> dict[str, Any]:
        """Return the `tls` part of a listener's settings."""
        return {"certificate": self.folder / "chain.pem", "key": self.folder / "key.pem", **more}

    def mutual(self) -> dict[str, Any]:
        return self.listener(client_ca=self.folder / "ca.pem")

    def dialler(self, name: str | None = None, common_name: str | None = None, **more: Any) -> dict[str, Any]:
        """Return the `tls` part of a dialler's settings, with a certificate of this authority if `name` is given."""
        files = {"ca": self.folder / "ca.pem"}
        if name is not None:
            issued = self.ca.issue_cert(name, common_name=common_name)
            files |= {"certificate": self.folder / f"{name}.pem", "key": self.folder / f"{name}.key"}
            files["certificate"].write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
            issued.private_key_pem.write_to_path(str(files["key"]))
        return {**files, **more}

    def client(self, name: str | None = None, common_name: str | None = None) -> ssl.SSLContext:
        """Return a client that trusts this authority, with a certificate of it if `name` is given."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        if name is not None:
            self.ca.issue_cert(name, common_name=common_name).configure_cert(context)
        return context


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that certifies the servers and clients of a test."""
    return Authority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def foreign_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority that no server trusts."""
    return Authority.create(tmp_path_factory.mktemp("foreign"))
