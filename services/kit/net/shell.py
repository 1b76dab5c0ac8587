"""Shell commands to paste that send an example request to a listener."""

from __future__ import annotations

from services.kit.net.listener import ListenerSettings

OCTETS = " | od -An -tx1"


def shell_example(
    listener: ListenerSettings, send: str, receive: str, show: str = OCTETS, quote: str = "'"
) -> str:
    """Return a command that sends the output of `send`, and passes the reply through `receive` and `show`.

    quote: the quotation marks around the script, which must not occur in it. A listener with TLS is asked through
    `openssl s_client`, which ends after 2 s; with `client_ca` the certificate's files have to be filled in.
    """
    host, port, tls = listener.host, listener.port, listener.tls
    if tls is None:
        script = f"exec 3<>/dev/tcp/{host}/{port}; {send} >&3; {receive} <&3{show}"
        return f"bash -c {quote}{script}{quote}"
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    certificate = " -cert CERTIFICATE -key KEY" if tls.client_ca else ""
    client = f"timeout 2 openssl s_client -quiet{certificate} -connect {address} 2>/dev/null"
    return f"bash -c {quote}{send} | {client} | {receive}{show}{quote}"
