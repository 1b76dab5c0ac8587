"""A minimal operator on kopf, for comparison: one handler that sets one condition, without a store.

Run it as `kopf run bare_kopf.py`.
"""

from datetime import UTC, datetime

import kopf

GROUP = "penstock.dev"


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="bare.example.org")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="bare.example.org")
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False


@kopf.on.create(GROUP, "v1alpha1", "queues")
async def created(meta, patch, **_):
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Bare",
        "message": "",
        "observedGeneration": meta["generation"],
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    patch.fns.append(lambda body: body.setdefault("status", {}).update(conditions=[ready]))
