"""Headless Chromium, and what it asked the network for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver

_NETWORK_LOG = "performance"


@pytest.fixture
def browser() -> Iterator[webdriver.Chrome]:
    """A browser of this test's own. Chromium or its driver missing is a failure that says what to install."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    assert driver, "no chromedriver on PATH: `apt install chromium chromium-driver`, or `brew install chromedriver`"
    assert chromium, "no chromium on PATH: `apt install chromium chromium-driver`"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # No sandbox, because root in a container has none; the pages are our own.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {_NETWORK_LOG: "ALL", "browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield started
    started.quit()


@pytest.fixture
def requested(browser: webdriver.Chrome) -> Callable[[], list[str]]:
    """Every address the page asked for since the last call."""

    def addresses() -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log(_NETWORK_LOG)]
        sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    return addresses
