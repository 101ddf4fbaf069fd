"""The page of a report in a browser: looks, links, keys, print; nothing of a model runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import CHROMIUM, Browser
from tests.unit.report.documents import EVIL, document
from tests.unit.tuning.helpers import measured_task

from tensorwright.report import LiveReport, write_report
from tensorwright.tuning.session import Phase, Progress

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

_LOOKS = Path(__file__).with_name("looks.js").read_text("utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        opened.resize(1280, 900)
        yield opened


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """A report, freshly opened."""
    write_report(tmp_path / "report.html", [document()])
    browser.messages.clear()
    browser.prefer("light")
    browser.open((tmp_path / "report.html").as_uri())
    return browser


def test_it_says_the_answer_first_and_runs_nothing_of_the_model(page: Browser) -> None:
    headline = page.run("document.getElementById('headline').textContent")
    want = "1.43 times as fast as ONNX Runtime (1.38 to 1.49); 500 µs left on the table"
    assert headline == want
    assert page.run("document.title").startswith(f"net {EVIL}")
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    assert page.messages == []


@pytest.mark.parametrize("count", [1, 2])
def test_every_button_link_and_fold_can_be_used(page: Browser, tmp_path: Path, count: int) -> None:
    write_report(tmp_path / "used.html", [document()] * count)
    page.open((tmp_path / "used.html").as_uri())
    used = page.run("""(() => {
      window.print = () => {};
      const seen = new Set();
      let count = 0;
      for (let round = 0; round < 12; round++) {
        const all = [...document.querySelectorAll("button, a, summary, tbody tr[tabindex]")];
        const fresh = all.filter((each) => !seen.has(each));
        if (!fresh.length) break;
        for (const each of fresh) {
          seen.add(each);
          if (each.isConnected) { each.click(); count += 1; }
        }
      }
      document.getElementById("help").close();
      return count;
    })()""")
    assert used > 60
    links = page.run("[...document.querySelectorAll('a')].map((each) => each.hash)")
    missing = [each for each in links if not page.run(f"!!document.querySelector('{each}')")]
    assert missing == []
    assert page.messages == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_can_be_read_and_cover_no_other(page: Browser, theme: str) -> None:
    page.prefer(theme)
    page.run("document.querySelector('details.rule').open = true")
    assert page.run(f"{_LOOKS}; lowContrast()") == []
    assert page.run(f"{_LOOKS}; overlaps()") == []
    assert page.run("document.documentElement.scrollWidth") <= 1280
    assert len(page.shot()) > 20_000


def test_it_fits_a_narrow_window(page: Browser) -> None:
    page.resize(420, 800)
    wide = page.run("document.documentElement.scrollWidth")
    page.resize(1280, 900)
    assert wide <= 420


def test_keys_move_through_the_page(page: Browser) -> None:
    chosen = "document.querySelector('tr.chosen .mono').textContent"
    assert page.run(chosen) == "aaaaaa"
    page.press("j")
    assert page.run(chosen) == "bbbbbb"
    page.press("k")
    assert page.run(chosen) == "aaaaaa"
    page.press("t")
    assert page.run("document.documentElement.dataset.theme") == "light"
    page.press("5")
    assert page.run("location.hash") == "#workloads"
    page.press("?")
    assert page.run("document.getElementById('help').open")
    page.run("document.querySelector('details.rule summary').focus()")
    assert page.messages == []


def test_a_changed_operator_leads_to_its_rule_and_its_proof(page: Browser) -> None:
    page.run("document.querySelector('.node.removed').click()")
    assert page.run("document.querySelector('details.rule.chosen').open")
    assert page.run("document.querySelector('.proof').textContent") == f"proved: {EVIL}"
    marked = "document.querySelectorAll('.nests .code.{}').length"
    assert page.run(marked.format("removed")) == 1
    assert page.run(marked.format("added")) == 2


def test_tables_copy_as_csv(page: Browser) -> None:
    page.run("document.querySelector('#workloads .copy').click()")
    head, first, *_ = page.run("copyText.last").split("\r\n")
    assert head.startswith("workload,weight,trials,default_us,best_us")
    assert first.startswith(f"conv2d_relu {EVIL},")
    assert ",2,12,400,333.3,100,350,1.333," in first
    page.run("copyText.last = toCsv([{title: 'a', value: (row) => row}], ['=1+1', 'x,\"y\"'])")
    assert page.run("copyText.last") == 'a\r\n\'=1+1\r\n"x,""y"""\r\n'


def test_what_if_says_what_a_faster_kernel_saves(page: Browser) -> None:
    text = "document.querySelector('.detail').textContent"
    assert "What if this were 2.00 times as fast? 300 µs less, 30 % of a run" in page.run(text)
    page.run("""(() => { const range = document.querySelector('.detail input');
      range.value = 6; range.dispatchEvent(new Event('input')); })()""")
    assert "more than the roofline allows" in page.run(text)


def test_it_prints(page: Browser) -> None:
    printed = page.printed()
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) < 20


def test_it_says_that_a_peak_was_measured_too_low(browser: Browser, tmp_path: Path) -> None:
    doubted = document()
    doubted["answer"] |= {"roofline_us": 1200.0}
    del doubted["answer"]["left_us"]
    write_report(tmp_path / "doubted.html", [doubted])
    browser.open((tmp_path / "doubted.html").as_uri())
    headline = browser.run("document.getElementById('headline').textContent")
    assert headline.endswith("; what is left on the table is not known")
    tiles = browser.run("document.querySelector('.tiles').textContent")
    assert "the peak was measured too low, by it a run would take 1.20 ms at least" in tiles


def test_no_share_is_above_the_roofline_and_a_last_measurement_is_apart(
    browser: Browser, tmp_path: Path
) -> None:
    report = document()
    report["profile"]["steps"][0] |= {"arithmetic_us": 1032.0, "above_roofline": "it computes less"}
    report["workloads"][0] |= {"is_searched": False}
    write_report(tmp_path / "above.html", [report])
    browser.open((tmp_path / "above.html").as_uri())
    text = browser.run("document.body.textContent")
    shares = [
        float(share) for share in re.findall(r"([\d.]+) %\??(?: of)?(?: the)? roofline", text)
    ]
    assert shares
    assert max(shares) <= 100
    assert "1.03 ms: it computes less" in text
    assert "not searched" in text
    assert browser.run("document.querySelectorAll('path.again').length") == 1


def test_two_reports_are_compared(browser: Browser, tmp_path: Path) -> None:
    newer = document()
    newer["answer"]["time_us"] = 800.0
    *_, tuned = newer["parts"]["parts"]
    headline = "document.getElementById('headline').textContent"
    browser.messages.clear()
    for least_us, said in (
        (991.0, "As fast as before, within the noise"),
        (790.0, "1.25 times as fast as before"),
    ):
        tuned |= {"least_us": least_us, "most_us": least_us + 18.0}
        write_report(tmp_path / "two.html", [document(), newer])
        browser.open((tmp_path / "two.html").as_uri())
        assert browser.run(headline) == said
    assert browser.run("document.querySelectorAll('h1').length") == 2
    assert browser.messages == []


def test_a_live_page_follows_the_search(browser: Browser) -> None:
    live = LiveReport("net", "tensorwright optimize net")
    try:
        browser.messages.clear()
        browser.open(live.address)
        row = measured_task(f"conv {EVIL}", 1.0, 16, 1e-3, 5e-4)
        live.on_progress(Progress(Phase.SEARCH, 1, 16, 3.0, 16, 3.0, 64, None, (row,)))
        browser.run("follow()")
        assert browser.run("document.getElementById('headline').textContent") == "now: search"
        live.finish([document()])
        browser.run("follow()")
        assert "1.43" in browser.run("document.getElementById('headline').textContent")
        assert browser.messages == []
    finally:
        live.stop()
