"""A whole configuration: environment and TOML file, with every fault reported at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.config.loading import Configuration, load
from jobs.core.errors import ConfigError
from jobs.core.policy import Finish, OnDeadline
from jobs.core.spending import Budget, Per

WHSEC = "whsec_c2ltdWxhdG9yLWRlbW8tc2VjcmV0LTAwMQ=="
GOOD = f"""
[providers.sim]
adapter = "simulator"
base_url = "http://127.0.0.1:9000/"
webhook_secrets = ["{WHSEC}"]
"""
SAFE_PRODUCTION = {
    "HOMING_ENV": "production",
    "HOMING_SECRET_KEY": "k" * 32,
    "HOMING_PUBLIC_URL": "https://homing.example",
    "HOMING_FLOWER_BASIC_AUTH": "flower:opensesame",
    "HOMING_DATABASE_URL": "postgresql+psycopg://u:p@h/d",
}

Loader = Callable[..., Configuration]


@pytest.fixture
def load_text(tmp_path: Path) -> Loader:
    """Loads a TOML text, with further variables as keywords."""

    def run(text: str, **environ: str) -> Configuration:
        path = tmp_path / "homing.toml"
        path.write_text(text, encoding="utf-8")
        return load({"HOMING_CONFIG": str(path), **environ})

    return run


def faults_of(run: Callable[[], object]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        run()
    return caught.value.faults


def test_every_key_of_an_entry_becomes_a_value(load_text: Loader) -> None:
    text = GOOD + (
        'tenant = "acme"\napi_token = "token"\nwebhook_tolerance = "1m"\nexpected = "90s"\nreview_after = "5m"\n'
        'deadline = "2h"\non_deadline = "fail"\npoll = { base = "2s", cap = "30s", overdue_cap = "5m" }\n'
        'rate_limit = "10/s"\nconcurrency = 50\nidempotency = "none"\nidempotency_window = "1h"\nsearch = false\n'
    )

    config = load_text(text).providers["sim"]

    assert config.base_url == "http://127.0.0.1:9000"
    assert (config.tenant, config.idempotency, config.search) == ("acme", "none", False)
    assert config.api_token is not None
    assert config.api_token.get_secret_value() == "token"
    assert config.webhook_secrets[0].key == b"simulator-demo-secret-001"
    assert config.scheme_options.tolerance == timedelta(minutes=1)
    policy = config.policy
    assert (policy.expected, policy.review_after) == (timedelta(seconds=90), timedelta(minutes=5))
    assert (policy.deadline, policy.on_deadline) == (timedelta(hours=2), OnDeadline.FAIL)
    assert (policy.poll_base, policy.poll_cap) == (timedelta(seconds=2), timedelta(seconds=30))
    assert (policy.overdue_cap, policy.rate_per_s, policy.concurrency) == (timedelta(minutes=5), 10.0, 50)


def test_all_faults_of_settings_and_file_come_together(load_text: Loader) -> None:
    text = """
    [providers.a]
    adapter = "simulater"
    [providers.b]
    adapter = "simulator"
    expcted = "3s"
    deadline = "1x"
    poll = { capp = "3s" }
    [provider.c]
    [plugins]
    modul = ["a"]
    """

    faults = faults_of(lambda: load_text(text, HOMING_DATABSE_URL="x", HOMING_WEBHOOK_MAX_BYTES="much"))

    for part in (
        "HOMING_DATABSE_URL is unknown; did you mean HOMING_DATABASE_URL?",
        "HOMING_WEBHOOK_MAX_BYTES:",
        "providers.a.adapter 'simulater' is unknown; did you mean simulator?",
        "providers.b.expcted is unknown; did you mean expected?",
        "providers.b.base_url is missing",
        "providers.b.deadline: '1x' is not a duration",
        "providers.b.poll.capp is unknown; did you mean cap?",
        "provider is unknown; did you mean providers?",
        "plugins.modul is unknown; did you mean modules?",
    ):
        assert any(part in fault for fault in faults), part


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[schedules.nightly]\n", "schedules"),
        ("[pipelines.x]\n", "pipelines"),
    ],
)
def test_what_a_later_release_brings_is_refused_by_name(load_text: Loader, text: str, name: str) -> None:
    faults = faults_of(lambda: load_text(text))

    assert any(f"{name} is not in this release" in fault for fault in faults)


def test_an_entry_says_where_its_files_may_come_from_and_what_may_be_stored(load_text: Loader) -> None:
    entry = load_text(
        GOOD
        + 'finish = "on_outcome"\nprivate_addresses = ["10.20.0.0/16"]\n'
        + 'artifacts = { types = ["video/mp4", "image/*"], max_bytes = "500MB" }\n'
    ).providers["sim"]

    assert entry.policy.finish is Finish.ON_OUTCOME
    assert [str(network) for network in entry.private_addresses] == ["10.20.0.0/16"]
    assert (entry.artifacts.types, entry.artifacts.max_bytes) == (("video/mp4", "image/*"), 500_000_000)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('finish = "some day"', "providers.sim.finish"),
        ('private_addresses = ["10.20.0.1/16"]', "providers.sim.private_addresses"),
        ('artifacts = { types = ["pictures"] }', "providers.sim.artifacts.types"),
        ('artifacts = { max_byte = "1MB" }', "did you mean max_bytes?"),
    ],
)
def test_a_mistake_about_files_is_named(load_text: Loader, text: str, place: str) -> None:
    faults = faults_of(lambda: load_text(f"{GOOD}{text}\n"))

    assert any(place in fault for fault in faults)


def test_secrets_come_from_the_environment_or_a_file(load_text: Loader, tmp_path: Path) -> None:
    (tmp_path / "hook.secret").write_text(WHSEC + "\n", encoding="utf-8")
    text = GOOD.replace(f'"{WHSEC}"', '{ env = "HOOK" }, { file = "hook.secret" }')

    config = load_text(text, HOOK="whsec_" + "QUJD" * 8).providers["sim"]

    assert [secret.key for secret in config.webhook_secrets] == [b"ABC" * 8, b"simulator-demo-secret-001"]


@pytest.mark.parametrize(
    "secret", ["whsec_xyz!", "whsec_", "", f"v1,{WHSEC}", "whsec_c2ltdWxhdG9y LWRlbW8tc2VjcmV0LTAwMQ=="]
)
def test_a_webhook_secret_that_would_decode_to_almost_nothing_is_refused(load_text: Loader, secret: str) -> None:
    """F09: named at start, and never quoted."""
    faults = faults_of(lambda: load_text(GOOD.replace(WHSEC, secret)))

    assert any("providers.sim.webhook_secrets" in fault for fault in faults)
    assert secret in ("", "whsec_") or not any(secret in fault for fault in faults)


def test_a_webhook_secret_with_a_newline_at_its_end_is_taken(load_text: Loader) -> None:
    """F09: outer blanks only are trimmed."""
    config = load_text(GOOD.replace(WHSEC, WHSEC + "\\n")).providers["sim"]

    assert config.webhook_secrets[0].key == b"simulator-demo-secret-001"


def test_a_secret_that_cannot_be_had_says_where_it_was_looked_for(load_text: Loader) -> None:
    text = GOOD.replace(f'"{WHSEC}"', '{ env = "NOPE" }, { file = "nowhere" }, { vault = "x" }, 3')

    faults = " ".join(faults_of(lambda: load_text(text)))

    assert "NOPE, which is not set" in faults
    assert "nowhere, which cannot be read" in faults
    assert faults.count("is no secret") == 2


def test_no_secret_of_an_entry_shows_in_repr(load_text: Loader) -> None:
    shown = repr(load_text(GOOD + 'api_token = "opensesame"\n'))

    assert "opensesame" not in shown
    assert "simulator-demo-secret" not in shown
    assert WHSEC not in shown


def test_production_names_each_insecure_choice(load_text: Loader) -> None:
    faults = faults_of(lambda: load_text(GOOD, HOMING_ENV="production", HOMING_ALLOW_PRIVATE_ADDRESSES="true"))

    for part in (
        "HOMING_SECRET_KEY",
        "HOMING_ALLOW_PRIVATE_ADDRESSES",
        "HOMING_PUBLIC_URL",
        "HOMING_FLOWER_BASIC_AUTH",
        "webhook_secrets[0] stands in the file as plain text",
    ):
        assert any(part in fault for fault in faults), part


def test_a_safe_production_starts_without_a_warning(load_text: Loader) -> None:
    configuration = load_text(GOOD.replace(f'"{WHSEC}"', '{ env = "HOOK" }'), HOOK=WHSEC, **SAFE_PRODUCTION)

    assert configuration.warnings == ()


def test_sqlite_in_production_is_a_warning(load_text: Loader) -> None:
    environ = {name: value for name, value in SAFE_PRODUCTION.items() if name != "HOMING_DATABASE_URL"}

    assert any("SQLite" in warning for warning in load_text("", **environ).warnings)


def test_a_named_file_must_exist_and_the_default_need_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert load({}).providers == {}
    assert "does not exist" in faults_of(lambda: load({"HOMING_CONFIG": "nowhere.toml"}))[0]


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "providers = 3",
        'providers = { sim = "x" }',
        '[providers."a b"]\nadapter = "simulator"\nbase_url = "http://h"',
        GOOD + "concurrency = 0",
        GOOD + 'concurrency = "5"',
        GOOD + 'expected = "2h"',
        GOOD + 'poll = { base = "10s", cap = "1s" }',
        GOOD + 'poll = "1s"',
        GOOD + 'webhook_scheme = "stripee"',
        GOOD + 'webhook_header = "X Sig"',
        GOOD.replace('adapter = "simulator"', ""),
        GOOD.replace('"simulator"', '"declarative"'),
        GOOD.replace(f'["{WHSEC}"]', f'"{WHSEC}"'),
        "plugins = 3",
        '[plugins]\nmodules = "a"',
        '[plugins]\nmodules = ["not a module"]',
    ],
)
def test_a_file_that_cannot_work_is_refused(load_text: Loader, text: str) -> None:
    assert faults_of(lambda: load_text(text))


def test_client_variables_are_no_fault(load_text: Loader) -> None:
    assert load_text(GOOD, HOMING_URL="http://h", HOMING_API_KEY="hk_x").providers


def test_plugins_are_kept_in_order(load_text: Loader) -> None:
    assert load_text('[plugins]\nmodules = ["b.c", "a"]').plugins == ("b.c", "a")


def test_a_budget_is_read(load_text: Loader) -> None:
    text = GOOD + 'budget = { amount = 50, currency = "EUR", per = "month" }\n'

    policy = load_text(text).providers["sim"].policy

    assert (policy.budget, policy.currency) == (Budget(50.0, Per.MONTH), "EUR")
    assert load_text(GOOD).providers["sim"].policy.budget is None


@pytest.mark.parametrize(
    ("budget", "fault"),
    [
        ("{ amount = 50 }", "providers.sim.budget.currency: Field required"),
        ('{ amount = 0, currency = "USD", per = "day" }', "budget.amount: Input should be greater than 0"),
        ('{ amount = "50", currency = "USD", per = "day" }', "budget.amount: Input should be a valid number"),
        ('{ amount = inf, currency = "USD", per = "day" }', "budget.amount: Input should be a finite number"),
        ('{ amount = 50, currency = "$", per = "day" }', "budget.currency: String should match"),
        ('{ amount = 50, currency = "USD", per = "week" }', "budget.per: Input should be 'day' or 'month'"),
        ('{ ammount = 50, currency = "USD", per = "day" }', "budget.ammount is unknown; did you mean amount?"),
        ("50", "budget"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(load_text: Loader, budget: str, fault: str) -> None:
    faults = faults_of(lambda: load_text(GOOD + f"budget = {budget}\n"))

    assert any(fault in one for one in faults), faults
