"""Pages to look at, and a real browser to look at them with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import CASES
from traceanalyzer.cli.main import cli

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)


@pytest.fixture(scope="session")
def cases() -> Path:
    return CASES


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """Run a command line."""

    def call(*arguments: Any) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments])

    return call


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Result]) -> Callable[..., Path]:
    """Write a report once and return its path."""
    folder = tmp_path_factory.mktemp("pages")
    made: dict[tuple[str, ...], Path] = {}

    def page(*arguments: Any) -> Path:
        key = tuple(map(str, arguments))
        if key not in made:
            made[key] = folder / f"page{len(made)}.html"
            result = run("report", *arguments, "-o", made[key])
            assert result.exit_code == 0, result.output
        return made[key]

    return page


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where screenshots go: $TRACEANALYZER_SCREENSHOTS, else a temporary folder."""
    stated = os.environ.get("TRACEANALYZER_SCREENSHOTS")
    folder = Path(stated) if stated else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return headless Chromium; skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium with chromedriver on this machine (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.webdriver.chrome.service import Service

    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()
