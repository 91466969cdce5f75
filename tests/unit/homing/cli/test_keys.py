"""Keys and schema, on the database itself."""

from __future__ import annotations

from tests.unit.homing.cli.conftest import Run


def test_migrate_may_be_repeated(run: Run) -> None:
    first = run("migrate", "--json").document
    second = run("migrate", "--json").document

    assert (first["from"], first["changed"]) == (None, True)
    assert second == {"from": first["to"], "to": first["to"], "changed": False}


def test_a_key_is_made_listed_and_revoked(run: Run) -> None:
    run("migrate")

    made = run("keys", "create", "--tenant", "acme", "--role", "viewer", "--json").document
    assert set(made) == {"id", "key", "tenant", "role"}
    assert (made["tenant"], made["role"]) == ("acme", "viewer")

    (listed,) = run("keys", "list", "--json").document["data"]
    assert listed["id"] == made["id"]
    assert made["key"] not in str(listed)

    assert run("keys", "revoke", made["id"]).code == 0
    assert run("keys", "revoke", made["id"]).code == 1
    (after,) = run("keys", "list", "--json").document["data"]
    assert after["revoked_at"] is not None


def test_only_the_key_goes_to_standard_output(run: Run) -> None:
    run("migrate")

    ended = run("keys", "create")

    assert ended.out.strip().startswith("hk_")
    assert len(ended.out.strip().splitlines()) == 1


def test_without_a_schema_it_says_to_migrate(run: Run) -> None:
    ended = run("keys", "list")

    assert ended.code == 2
    assert "homing migrate" in ended.err


def test_a_tenant_that_cannot_be_named_is_a_failure(run: Run) -> None:
    run("migrate")

    assert run("keys", "create", "--tenant", "a b").code == 1
