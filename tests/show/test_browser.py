"""The report in a real browser: nothing of the trace runs, and what is offered to click works."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Pages = Callable[..., Path]


def look(browser: Any, page: Path, *, scheme: str = "light", width: int = 1280) -> None:
    # Without smooth scrolling, which moves what is about to be clicked.
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 700},
    )
    browser.get_log("browser")
    browser.get(page.as_uri())


def picture(browser: Any, target: Path) -> None:
    height = browser.execute_script("return document.documentElement.scrollHeight")
    width = browser.execute_script("return window.innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    target.write_bytes(base64.b64decode(shot["data"]))


def column(browser: Any, table: str, heading: str) -> list[str]:
    """The visible cells of a column, top to bottom."""
    texts: list[str] = browser.execute_script(
        """const table = document.getElementById(arguments[0]);
        const at = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent.startsWith(arguments[1]));
        return [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[at].textContent.trim());""",
        table,
        heading,
    )
    return texts


def press(browser: Any, table: str, heading: str) -> str:
    """Click a heading; return how the column is sorted then."""
    order: str = browser.execute_script(
        """const cells = [...document.getElementById(arguments[0]).tHead.rows[0].cells];
        const cell = cells.find(cell => cell.textContent.startsWith(arguments[1]));
        cell.querySelector("button").click();
        return cell.getAttribute("aria-sort");""",
        table,
        heading,
    )
    return order


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace(",", "").replace("%", "").replace("<", "")) for text in texts if text]


def test_nothing_of_a_trace_runs_or_becomes_markup(browser: Any, pages: Pages, cases: Path) -> None:
    look(browser, pages(cases / "017_nasty_names.json"))
    assert browser.get_log("browser") == []
    scripts = browser.execute_script("return [...document.scripts].map(script => script.type)")
    assert scripts == ["application/json", ""]
    names = column(browser, "kernels", "kernel")
    assert len(names) == 11
    assert any("</script><script>alert" in name for name in names)
    shown = browser.execute_script("return document.body.innerText")
    assert "[red]bold[/red]" in shown
    assert 'k"quoted"\\back\\slash' in shown


def test_a_script_that_got_into_the_page_would_not_run(browser: Any, pages: Pages, cases: Path, tmp_path: Path) -> None:
    text = pages(cases / "017_nasty_names.json").read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<main", "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><main"))
    look(browser, broken)
    assert browser.execute_script("return window.ran ?? null") is None
    assert len(browser.get_log("browser")) >= 1


def test_pages_open_without_messages_in_light_dark_and_on_a_phone(
    browser: Any, pages: Pages, cases: Path, samples: Path, screenshots: Path
) -> None:
    shown = {
        "trace": pages(samples / "gptoss20b_decode_synthetic.json.gz"),
        "ranks": pages(cases / "303_allreduce_wait"),
        "diff": pages("--diff", cases / "600_ab_before.json.gz", cases / "600_ab_after.json.gz"),
    }
    for name, page in shown.items():
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            look(browser, page, scheme=scheme, width=width)
            picture(browser, screenshots / f"{name}_{scheme}_{width}.png")
            assert browser.get_log("browser") == [], (name, scheme, width)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, "the page itself must not scroll sideways"
    assert len(list(screenshots.glob("*.png"))) >= 9


def test_figures_are_whole_where_there_is_room_for_them(browser: Any, pages: Pages, samples: Path) -> None:
    page = pages(samples / "gptoss20b_decode_synthetic.json.gz")
    cut_off = """return [...document.querySelectorAll(".plot .scroll")]
        .filter(box => box.scrollWidth > box.clientWidth).map(box => box.getAttribute("aria-label"))"""
    for width in (700, 901, 1000, 1100, 1181, 1280, 1600):
        look(browser, page, width=width)
        assert browser.execute_script(cut_off) == [], width


def test_headings_sort_numbers_by_size_and_text_by_letter(browser: Any, pages: Pages, samples: Path) -> None:
    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    assert press(browser, "kernels", "mean") == "descending"
    means = numbers(column(browser, "kernels", "mean"))
    assert means == sorted(means, reverse=True)
    assert press(browser, "kernels", "mean") == "ascending"
    assert numbers(column(browser, "kernels", "mean")) == sorted(means)
    assert press(browser, "kernels", "role") == "ascending"
    roles = [role for role in column(browser, "kernels", "role") if role]
    assert roles == sorted(roles)
    # Unknown values stay at the end, whichever way the others are sorted.
    for _ in range(2):
        press(browser, "kernels", "headroom")
        cells = column(browser, "kernels", "headroom")
        known = [cell != "" for cell in cells]
        assert False in known
        assert known == sorted(known, reverse=True)


def test_the_filter_keeps_rows_with_every_word_and_counts_them(browser: Any, pages: Pages, samples: Path) -> None:
    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    field = browser.find_element("css selector", "input[data-table=kernels]")
    field.send_keys("matmul MOE_DOWN")
    assert column(browser, "kernels", "role") == ["moe_down"]
    assert browser.find_element("id", "kernels-shown").text == "1 of 20 rows"
    field.clear()
    field.send_keys("no such kernel")
    assert column(browser, "kernels", "role") == []
    browser.execute_script("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", field)
    assert len(column(browser, "kernels", "role")) == 20


def test_full_names_can_be_shown(browser: Any, pages: Pages, samples: Path) -> None:
    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    long = browser.find_element("css selector", "#kernels .full")
    assert not long.is_displayed()
    browser.find_element("css selector", "input[data-names=kernels]").click()
    assert long.is_displayed()


def test_a_block_shows_its_kernels(browser: Any, pages: Pages, samples: Path) -> None:
    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    cells = browser.find_elements("css selector", "[data-strip=strip0] .cell")
    assert len(cells) == 24
    detail = browser.find_element("id", "strip0-d")
    assert not detail.is_displayed()
    cells[3].click()
    assert detail.is_displayed()
    assert "Block 3, variant B" in detail.text
    assert "_matmul_ogs" in detail.text
    shares = browser.execute_script(
        "return [...document.querySelectorAll('#strip0-d tbody tr')].map(row => row.cells[2].textContent)"
    )
    assert sum(numbers(shares)) == pytest.approx(100, abs=1)
    assert cells[3].get_attribute("aria-pressed") == "true"
    cells[3].click()
    assert not detail.is_displayed()


def test_blocks_can_be_reached_with_the_keyboard(browser: Any, pages: Pages, samples: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    first = browser.find_element("css selector", "[data-strip=strip0] .cell")
    browser.execute_script("arguments[0].focus()", first)
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ENTER):
        browser.switch_to.active_element.send_keys(key)
    assert "Block 1," in browser.find_element("id", "strip0-d").text
    # One stop of the tab key a strip.
    stops = browser.execute_script(
        "return document.querySelectorAll('[data-strip=strip0] .cell[tabindex=\"0\"]').length"
    )
    assert stops == 1


def test_text_has_contrast_in_light_and_dark(browser: Any, pages: Pages, samples: Path) -> None:
    """WCAG AA: 4.5 to 1 for text, against the background it stands on."""
    measure = """
      const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
      const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const ground = node => {
        for (let at = node; at; at = at.parentElement) {
          const colour = parse(getComputedStyle(at).backgroundColor);
          if (colour.length === 3) return colour;
        }
        return [255, 255, 255];
      };
      const poor = [];
      const texts = "p, dt, dd, li, a, th button, td, caption, h1, h2, h3, code, .number, .variant, svg text";
      for (const node of document.querySelectorAll(texts)) {
        const style = getComputedStyle(node);
        const ink = node.closest("svg") ? style.fill : style.color;
        const [a, b] = [light(parse(ink)), light(ground(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5 && node.textContent.trim()) poor.push([node.tagName, node.textContent.slice(0, 30), ratio]);
      }
      return poor;"""
    for scheme in ("light", "dark"):
        look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"), scheme=scheme)
        assert browser.execute_script(measure) == [], scheme


def test_it_prints_in_light_colours_without_controls(browser: Any, pages: Pages, samples: Path) -> None:
    look(browser, pages(samples / "gptoss20b_decode_synthetic.json.gz"), scheme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    colours = browser.execute_script(
        "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert not browser.find_element("css selector", "nav").is_displayed()
    # A footer group would be repeated on every page, below rows that it is not the sum of.
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert browser.execute_script(shown, "tfoot") == "table-row-group"
    assert browser.execute_script(shown, "thead") == "table-header-group"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
