"""The pictures of the report in README.md: ``python -m docs.generate.pictures`` where the Makefile is.

Needs Chromium and its driver.
"""

from __future__ import annotations

import base64
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from PIL import Image

from traceanalyzer.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = "traces/gptoss20b_decode_synthetic.json.gz"
SIZE = {"width": 1120, "height": 800, "deviceScaleFactor": 1.5, "mobile": False}
"""Shown 840 wide in README.md: three quarters of the page's own size, and two points a pixel on fine screens."""
COLOURS = 128


def main() -> None:
    """Write a report on the sample, and the top of it as a light and as a dark picture."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options=options, service=service) as browser:
        page = Path(folder) / "report.html"
        result = CliRunner().invoke(cli, ["report", SAMPLE, "-o", str(page)])
        if result.exit_code:
            raise SystemExit(result.output)
        for scheme in ("light", "dark"):
            (ROOT / "docs" / "images" / f"report-{scheme}.png").write_bytes(picture(browser, page, scheme))


def picture(browser: Any, page: Path, scheme: str) -> bytes:
    """Return the top of a page as PNG."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
    browser.get(page.as_uri())
    shot = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
    # A palette takes less than half of the bytes, and the page has few colours.
    small = io.BytesIO()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return small.getvalue()


if __name__ == "__main__":
    main()
