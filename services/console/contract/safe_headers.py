"""Security headers of responses, and the name of the server."""

from __future__ import annotations

CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
# for scripts, styles and fonts; the others have no effect there
SAFE_PART = {"X-Content-Type-Options": "nosniff"}
SAFE = {
    **SAFE_PART,
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SERVER = "penstock"  # else aiohttp adds its version
