"""What the pages say is what the code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from homing.cli.app import app as command_line
from homing.metrics import Queues, Rows
from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault
from homing.web import create_app
from jobs import telemetry
from jobs.clock import FakeClock
from jobs.config.loading import _TABLES, load
from jobs.config.providers import ADAPTERS, ProviderConfig
from jobs.config.settings import CLIENT_VARIABLES, PREFIX, Settings
from jobs.core.events import EventType
from jobs.core.observations import ReviewReason
from jobs.core.signatures import SCHEMES
from jobs.core.states import TERMINAL, TRANSITIONS
from jobs.handlers import Handler, HandlerRegistry
from jobs.services.letters.redrivers import REDRIVERS
from jobs.storage.database import Database
from tests.fakes.runtime import a_runtime
from webhooks.incoming.letters import LETTER_KIND
from webhooks.outgoing import letters as outgoing_letters

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
#: Reasons that nothing in this release gives.
LATER_REVIEWS = {ReviewReason.COMPENSATION_FAILED}


def page(name: str) -> str:
    return (DOCS / name).read_text()


def section(text: str, title: str) -> str:
    """A page from one heading to the next of its kind."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """The first cell of each table row."""
    return re.findall(r"^\| (.*?) \|", text, flags=re.MULTILINE)


def names_in(cells: Iterable[str]) -> set[str]:
    """What stands in backticks in some cells."""
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


# Pages ---------------------------------------------------------------------------------------------------


def documented_invariants() -> set[str]:
    return set(re.findall(r"^\| (I\d+) \|", page("invariants.md"), flags=re.MULTILINE))


def claimed_invariants() -> set[str]:
    pattern = re.compile(r'pytest\.mark\.invariant\("(I\d+)"\)')
    return {found for path in (ROOT / "tests").rglob("test_*.py") for found in pattern.findall(path.read_text())}


def test_each_documented_invariant_has_a_test_that_carries_its_id() -> None:
    assert documented_invariants() - claimed_invariants() == set()


def test_no_test_claims_an_invariant_that_is_not_documented() -> None:
    assert claimed_invariants() - documented_invariants() == set()


def test_the_diagram_of_the_lifecycle_is_the_table_of_states() -> None:
    drawn = set(re.findall(r"^    (\S+) --> (\S+)$", page("lifecycle.md"), flags=re.MULTILINE))

    steps = {(str(before), str(after)) for before, ends in TRANSITIONS.items() for after in ends}
    assert drawn == steps | {("[*]", "pending")} | {(str(end), "[*]") for end in TERMINAL}


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def broken_links(source: Path) -> Iterator[str]:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", source.read_text()):
        aim = (source.parent / target) if target else source
        if not aim.exists():
            yield f"{source.relative_to(ROOT)}: {target}"
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", aim.read_text(), flags=re.MULTILINE)):
            yield f"{source.relative_to(ROOT)}: {target}#{anchor}"


def test_every_link_between_pages_leads_somewhere() -> None:
    assert [broken for source in PAGES for broken in broken_links(source)] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = page("index.md")
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path.parent.name != "decisions"}

    assert {name for name in pages - {"index.md"} if f"({name})" not in index} == set()


def test_decisions_have_numbers_of_their_own() -> None:
    files = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [path.name[:4] for path in files]

    assert len(set(numbers)) == len(numbers)
    assert [path.name for path in files if not path.read_text().startswith(f"# {int(path.name[:4])}. ")] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for package in ("homing", "jobs", "webhooks", "reconciler")
        for path in (ROOT / package).rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert silent == []


# Settings ------------------------------------------------------------------------------------------------


def test_the_page_of_settings_lists_every_variable_and_no_other() -> None:
    listed = names_in(first_cells(section(page("reference/settings.md"), "Environment")))

    assert listed == {PREFIX + name.upper() for name in Settings.model_fields}


def test_no_page_names_a_variable_that_is_unknown() -> None:
    known = {*(PREFIX + name.upper() for name in Settings.model_fields), *CLIENT_VARIABLES}
    named = {name for source in PAGES for name in re.findall(r"\bHOMING_[A-Z_]+\b", source.read_text())}

    assert named - known == set()


def test_the_page_of_settings_lists_every_key_of_the_file() -> None:
    listed = names_in(first_cells(section(page("reference/settings.md"), "The TOML file")))

    headings = {"[providers.<name>]", "[plugins]"}
    assert headings == {name for name in listed if name.startswith("[")}
    assert {"providers", "plugins"} == set(_TABLES)
    assert listed - headings == {*ProviderConfig.model_fields, "modules"} - {"mapping"}  # what sections come to


def test_adapters_and_signature_schemes_are_named_where_they_are_chosen() -> None:
    settings, receiving = page("reference/settings.md"), page("howto/receive_webhooks.md")

    assert [name for name in ADAPTERS if f"`{name}`" not in settings] == []
    assert [name for name in SCHEMES if f"`{name}`" not in settings] == []
    assert set(SCHEMES) <= names_in(first_cells(receiving))


# Events, metrics, dead letters, reviews ------------------------------------------------------------------


def test_the_page_of_events_lists_every_type_and_no_other() -> None:
    listed = names_in(first_cells(section(page("reference/events.md"), "Types")))

    assert listed == set(EventType)


class AllQueues:
    """A Redis that answers."""

    def fault(self) -> None:
        return None

    def depths(self, names: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(names, 0)

    unacked = depths


def exposed(database: Database) -> dict[str, set[str]]:
    """Metrics as Prometheus names them, and their labels where a sample shows them."""
    collectors = (Rows(database), Queues(AllQueues()), telemetry.registry)  # type: ignore[arg-type] # its three methods
    families = [family for collector in collectors for family in collector.collect()]
    return {
        family.name + ("_total" if family.type == "counter" else ""): {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
        for family in families
    }


@pytest.fixture
def database(sqlite_url: str, clock: FakeClock) -> Iterator[Database]:
    connected = Database.connect(sqlite_url, clock=clock)
    yield connected
    connected.close()


def test_the_page_of_metrics_lists_every_metric_and_no_other(database: Database) -> None:
    rows = re.findall(r"^\| (`homing_\w+`) \| (.*?) \|", page("reference/metrics.md"), flags=re.MULTILINE)
    listed = {names_in([name]).pop(): names_in([labels]) for name, labels in rows}

    metrics = exposed(database)

    assert set(listed) == set(metrics)
    assert {name: labels for name, labels in metrics.items() if not labels <= listed[name]} == {}


def test_every_metric_a_process_declares_is_written_somewhere() -> None:
    declared = set(
        re.findall(r"^([A-Z_]+) = (?:Counter|_histogram)\(", (ROOT / "jobs/telemetry.py").read_text(), re.MULTILINE)
    )
    sources = [path for name in ("homing", "jobs", "webhooks", "reconciler") for path in (ROOT / name).rglob("*.py")]
    code = "\n".join(path.read_text() for path in sources)

    assert declared
    assert {name for name in declared if not re.search(rf"\b{name}\.(labels|inc|observe)\(", code)} == set()


def test_the_runbook_says_what_to_do_about_every_kind_of_dead_letter() -> None:
    listed = names_in(first_cells(section(page("runbook.md"), "Dead letters")))

    assert listed == {*REDRIVERS, LETTER_KIND, outgoing_letters.LETTER_KIND}


def test_the_runbook_says_what_to_do_about_every_review() -> None:
    listed = names_in(first_cells(section(page("runbook.md"), "Jobs in review")))

    assert listed == {str(reason) for reason in set(ReviewReason) - LATER_REVIEWS}


def test_reviews_of_a_later_release_are_given_by_nothing_yet() -> None:
    asked = {
        match
        for package in ("jobs", "webhooks", "reconciler")
        for path in (ROOT / package).rglob("*.py")
        for match in re.findall(r"Review\(ReviewReason\.(\w+)", path.read_text())
    }

    assert asked.isdisjoint({reason.name for reason in LATER_REVIEWS})


# Commands ------------------------------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    """Every command by its words."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: str) -> None:
        children = getattr(command, "commands", None)
        if children is None:
            found[words] = command
        for name, child in (children or {}).items():
            walk(child, f"{words} {name}")

    walk(typer.main.get_command(command_line), "homing")
    return found


def options_of(command: Any) -> set[str]:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    names = {name for param in shown for name in (*param.opts, *param.secondary_opts)}
    return {name for name in names if name.startswith("--")}


def test_the_page_of_the_command_line_lists_every_command_with_its_options() -> None:
    rows = re.findall(r"^\| `(homing [a-z -]+)` \| (.*?) \|", page("reference/cli.md"), flags=re.MULTILINE)

    listed = {name: names_in([options]) for name, options in rows}

    assert listed == {name: options_of(command) - {"--json"} for name, command in commands().items()}
    assert [name for name, command in commands().items() if "--json" not in options_of(command)] == []


def named_commands() -> Iterator[tuple[str, str]]:
    """Each `homing …` that a page tells a reader to run: the page, and the words."""
    for source in PAGES:
        text = source.read_text()
        shown = [line for block in blocks(text, "console") for line in block.splitlines()]
        for line in [*shown, *re.findall(r"`([^`\n]*?homing [^`\n]+)`", text)]:
            words = re.search(r"(?:^|[ /])homing ([a-z][^#]*)", line)
            if words:
                yield source.name, words[1]


def test_every_command_a_page_names_exists_with_those_options() -> None:
    known = commands()
    wrong = []
    for source, words in named_commands():
        name = next((name for name in known if f"homing {words} ".startswith(f"{name} ")), None)
        is_group = any(name.startswith(f"homing {words.split()[0]} ") for name in known)
        used = set(re.findall(r"(?:^| )(--[a-z-]+)", words))
        if not (is_group if name is None else used <= options_of(known[name])):
            wrong.append(f"{source}: homing {words}")

    assert wrong == []


def test_every_make_target_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        name
        for source in PAGES
        for name in re.findall(r"(?:`|\$ )(?:ARGS=\S+ \S+ )?make ([a-z-]+)", source.read_text())
    }

    assert named
    assert named - targets == set()


# The API and the simulator -------------------------------------------------------------------------------


def served(database: Database) -> set[str]:
    """Every route, as the pages write it."""
    rules = create_app(a_runtime(database)).url_map.iter_rules()
    plain = {(rule.rule, method) for rule in rules for method in (rule.methods or ()) if method in ("GET", "POST")}
    written = {method + " " + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path) for path, method in plain}
    return {route for route in written if not route.endswith(("/webhooks/{path}", "/docs/{name}", "{filename}"))}


def test_the_page_of_the_api_lists_every_route_and_no_other(database: Database) -> None:
    listed = names_in(first_cells(section(page("reference/api.md"), "Routes")))

    own = {"POST /webhooks/{provider}", "POST /webhooks/{provider}/{token}"}
    assert listed - own == served(database)
    assert own <= listed


def test_the_page_of_the_simulator_names_every_fault_and_every_capability() -> None:
    text = page("reference/simulator.md")

    assert [str(fault) for fault in Fault if f"`{fault}`" not in text] == []
    assert [name for name in ("idempotency", "idempotency_window", "search") if f"`{name}`" not in text] == []
    assert SimulatorConfig().port == 0  # so that `--port 9000` is the command's own, as the page of commands says


# README --------------------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("source", ["README.md", "docs/howto/receive_webhooks.md", "docs/howto/handle_events.md"])
def test_a_toml_sample_loads(source: str, tmp_path: Path) -> None:
    secrets = {"RENDERS_TOKEN": "t", "RENDERS_WEBHOOK_SECRET": "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="}

    for number, sample in enumerate(blocks((ROOT / source).read_text(), "toml")):
        file = tmp_path / f"homing-{number}.toml"
        file.write_text(sample)
        assert load({"HOMING_CONFIG": str(file), **secrets}).warnings == ()


def test_every_sample_of_the_page_of_providers_loads(tmp_path: Path) -> None:
    text = page("reference/providers.md")
    file = tmp_path / "homing.toml"
    file.write_text("".join(blocks(text, "toml")))
    secrets = dict.fromkeys(re.findall(r'env = "(\w+)"', text), "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=")

    configuration = load({"HOMING_CONFIG": str(file), **secrets})

    assert configuration.warnings == ()
    titles = re.findall(r"^## (\S+)$", text, flags=re.MULTILINE)
    assert {config.adapter for config in configuration.providers.values()} >= {
        name for name in titles if name in ADAPTERS
    }


def register(sample: str, monkeypatch: pytest.MonkeyPatch) -> HandlerRegistry:
    registry = HandlerRegistry()
    monkeypatch.setattr("jobs.handlers.registry", registry)
    exec(compile(sample, "sample.py", "exec"), {"__name__": "my_handlers"})
    return registry


def test_the_handlers_of_the_readme_register(monkeypatch: pytest.MonkeyPatch) -> None:
    (sample,) = blocks(README, "python")

    registry = register(sample, monkeypatch)

    deliver, alert = registry.find("my_handlers.deliver"), registry.find("my_handlers.alert")
    assert deliver is not None
    assert deliver.transactional
    assert alert is not None
    assert [handler.name for handler in registry.wanting("job.succeeded", "renders")] == ["my_handlers.deliver"]
    assert [handler.name for handler in registry.wanting("job.failed", "other")] == ["my_handlers.alert"]


def test_the_handlers_of_the_how_to_register(monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in blocks(page("howto/handle_events.md"), "python"):
        assert list(register(sample, monkeypatch).wanting("job.succeeded", "renders")) or "job.failed" in sample


def test_the_handlers_of_events_register(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = blocks(page("howto/receive_webhooks.md"), "python")

    names = {"payments", "mail"}
    found = {name for sample in samples for name in names if list(wanted(sample, name, monkeypatch))}
    assert found == names


def wanted(sample: str, provider: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handler]:
    return register(sample, monkeypatch).wanting("webhook.received", provider)
