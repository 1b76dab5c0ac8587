"""What every answer tells browsers to refuse, and the name of the server."""

from __future__ import annotations

CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
SAFE_PART = {
    "X-Content-Type-Options": "nosniff"
}  # of a script, a style or a font: the others do nothing there
SAFE = {
    **SAFE_PART,
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SERVER = "penstock"  # in place of versions, which aiohttp writes where no other name stands
