"""The API reference is readable in a browser, and asks no other host for anything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from werkzeug.serving import make_server

from homing.composition import assemble
from homing.web import create_app
from jobs.broker import SilentBroker
from jobs.clock import SystemClock
from jobs.config.loading import load
from jobs.handlers import HandlerRegistry
from jobs.storage.database import Database

_SHOWN_WITHIN_S = 20


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path) -> Iterator[str]:
    """The web application, served from this process."""
    configuration = load({"HOMING_DATABASE_URL": sqlite_url, "HOMING_DATA_DIR": str(tmp_path)})
    database = Database.connect(sqlite_url)
    runtime = assemble(
        configuration,
        clock=SystemClock(),
        database=database,
        broker=SilentBroker(),
        handlers=HandlerRegistry(),
    )
    server = make_server("127.0.0.1", 0, create_app(runtime), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
    database.close()


def test_the_reference_shows_every_operation_without_asking_another_host(
    browser: Chrome, requested: Callable[[], list[str]], url: str
) -> None:
    browser.get(f"{url}/docs")

    operations = WebDriverWait(browser, _SHOWN_WITHIN_S).until(
        lambda shown: shown.find_elements(By.CSS_SELECTOR, ".opblock-summary-path")
    )

    paths = {operation.text.replace("\u200b", "") for operation in operations}
    assert {"/v1/jobs", "/v1/jobs/{job_id}"} <= paths
    hosts = {urlsplit(address).netloc for address in requested() if not address.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(url).netloc}
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
