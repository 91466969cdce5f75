from __future__ import annotations

import pytest

from jobs.core.errors import NotFound, Unauthorized, Unprocessable
from jobs.services.keys import Role, authenticate, create_key, list_keys, revoke_key
from jobs.storage.database import Database


def test_a_key_opens_its_tenant_with_its_role(database: Database) -> None:
    made = create_key(database, tenant="acme", role="viewer")

    principal = authenticate(database, f"Bearer {made.key}")

    assert (principal.tenant, principal.role, principal.key_id) == ("acme", Role.VIEWER, made.id)


def test_the_scheme_is_read_in_any_case(database: Database) -> None:
    made = create_key(database)

    assert authenticate(database, f"bearer  {made.key}").tenant == "default"


def test_keys_are_listed_without_their_secrets(database: Database) -> None:
    first, second = create_key(database, tenant="acme"), create_key(database, role="admin")

    listed = list_keys(database)

    assert {key["id"] for key in listed} == {first.id, second.id}
    assert set(listed[0]) == {"id", "tenant", "role", "created_at", "revoked_at"}


def test_a_key_is_not_shown_by_accident() -> None:
    from jobs.services.keys import NewKey

    assert "hk_abc" not in repr(NewKey("key_1", "hk_abc", "acme", Role.ADMIN))


def test_a_key_is_revoked_once(database: Database) -> None:
    made = create_key(database)

    revoke_key(database, made.id)

    with pytest.raises(Unauthorized):
        authenticate(database, f"Bearer {made.key}")
    with pytest.raises(NotFound):
        revoke_key(database, made.id)
    assert list_keys(database)[0]["revoked_at"] is not None


@pytest.mark.parametrize("tenant", ["", "a" * 65, "acme corp", "-acme", "é", "a/b"])
def test_a_tenants_name_is_plain(database: Database, tenant: str) -> None:
    with pytest.raises(Unprocessable) as caught:
        create_key(database, tenant=tenant)

    assert [fault.field for fault in caught.value.fields] == ["tenant"]


def test_a_role_is_one_of_three(database: Database) -> None:
    with pytest.raises(Unprocessable, match="viewer, operator, admin"):
        create_key(database, role="root")
