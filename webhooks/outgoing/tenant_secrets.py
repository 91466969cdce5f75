"""A tenant's default secret, which signs the callbacks of its jobs; made when it is first needed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from webhooks.outgoing.schema import signing_secrets
from webhooks.outgoing.sealing import Sealer, sealer_for
from webhooks.outgoing.secrets import first, live, new_signing_secret

_s = signing_secrets.c


def read_signing_secret(runtime: Runtime, tenant: str) -> str:
    """The tenant's secret as its receivers need it.

    Raises:
        Unopened: It was sealed with a key that is not here.
    """
    sealer = sealer_for(runtime.settings)
    with runtime.database.write() as tx:
        return live(sealer, tenant_secrets(tx, sealer, tenant), at=tx.now)[0]


def tenant_secrets(tx: Transaction, sealer: Sealer, tenant: str) -> list[dict[str, Any]]:
    """The sealed secrets of a tenant. Of two who make the first one, both take the same."""
    statement = sa.select(_s.secrets).where(_s.tenant == tenant)
    found: list[dict[str, Any]] | None = tx.execute(statement).scalar_one_or_none()
    if found is not None:
        return found
    row = {"tenant": tenant, "secrets": first(sealer, new_signing_secret()), "created_at": tx.now}
    tx.execute(tx.insert(signing_secrets).values(row).on_conflict_do_nothing())
    made: list[dict[str, Any]] = tx.execute(statement).scalar_one()
    return made
