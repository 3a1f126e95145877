"""The catalogue is built without a network, and read in Chromium from the folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from locking import holds, read
from playwright.sync_api import Page, sync_playwright

from mvstack.model.load import load_release, load_system, system_names
from mvstack.support.home import DATA

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue") / "site"
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    build = [*alone, sys.executable, "-P", "-m", "mkdocs", "build", "-q", "-d", str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(DATA / "src"), "NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(
        build, cwd=DATA, env=environ, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Links(HTMLParser):
    """What a page points to, and what in it can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.to: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.to.add(value)
            elif name == "id" and value:
                self.ids.add(value)


def test_every_link_leads_somewhere_and_nothing_comes_from_a_server(site: Path) -> None:
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for to in page.to:
            file, _, place = unquote(to).partition("#")
            if re.match(r"\w+:", to) or path.name == "404.html":
                continue
            there = (path.parent / file.partition("?")[0]).resolve() if file else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (place and place not in pages[there].ids):
                lost.append(f"{path.relative_to(site)}: {to}")
        outside = re.findall(r"<(?:script|link|img)[^>]+=.?(https?:[^ >]+)", path.read_text())
        lost += [f"{path.relative_to(site)}: {one}" for one in outside]
    assert sorted(lost) == []


def test_a_command_that_no_test_runs_is_marked_below_it(site: Path) -> None:
    """The page of a system: its launch line; a guide: what takes a cluster."""
    for name, start in (("systems/expanse", "srun"), ("spack", "spack test run")):
        text = re.sub(r"<span[^>]*>|</span>", "", (site / f"{name}.html").read_text())
        after = text[text.index(f"\n{start}" if name == "spack" else f"<code>{start}") :]
        assert after.partition("</pre></div>")[2].lstrip().startswith('<p class="unrun">Not run')


def test_drawings_say_in_words_what_they_show(site: Path) -> None:
    text = (site / "systems" / "expanse.html").read_text()
    said = re.findall(r'<svg class="drawing" role="img"[^>]*aria-label="([^"]+)"', text)
    assert any("56 nodes of 40 cores" in one and "4 × V100" in one for one in said)
    assert any("mvapich/4.0-ucx" in one for one in said if one.startswith("Tree of modules"))
    text = (site / "software" / "lammps.html").read_text()
    assert "a Lennard-Jones melt" in text and "The time of the melt" in text


def test_each_system_and_package_has_its_page(site: Path) -> None:
    for name in (one for one in system_names() if one != "local"):
        text = (site / "systems" / f"{name}.html").read_text()
        for part in load_system(name).partitions:
            assert f"{name}/{part}" in text
    for package in load_release().packages:
        assert (site / "software" / f"{package.name.lower()}.html").is_file()


def test_a_page_claims_no_more_than_was_seen(site: Path) -> None:
    text = (site / "systems" / "frontier.html").read_text()
    assert "not run on this system" in text
    assert not re.search(r"<td>(built|run)</td>", text)


def test_a_partition_is_concretized_as_long_as_its_lock_holds(site: Path) -> None:
    """Rows of the records count as long as environment and recipe are the same."""
    names = [name for name in system_names() if name != "local"]
    texts = [(site / "systems" / f"{name}.html").read_text() for name in names]
    seen = [one for text in texts for one in re.findall(r"<th>seen</th>\s*<th>(.*?)</th>", text)]
    assert len(seen) == sum(len(load_system(name).partitions) for name in names)
    for one in seen:
        word, _, rest = one.partition("; ")
        parts = re.fullmatch(r"(\d+) of (\d+) packages concretized", rest)
        assert word in ("explained", "rendered", "concretized")
        assert not rest or (parts and 0 < int(parts[1]) < int(parts[2]))
    locked = sum(one.startswith("concretized") for one in seen)
    assert locked == sum(holds(row) for row in read() if row.release == load_release().name)


@pytest.fixture(scope="module")
def page(site: Path) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        opened = context.new_page()
        opened.goto(f"file://{site}/index.html")
        yield opened
        browser.close()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("gordon", "systems/gordon"),
        ("lammps expanse", "software/lammps"),  # which leads to the lines for Expanse
        ("FI_PROVIDER", "policy"),
        ("gpu h100", "systems/"),
    ],
)
def test_a_search_finds_the_right_page_first(
    page: Page, site: Path, words: str, first: str
) -> None:
    page.goto(f"file://{site}/index.html")
    page.locator("input.md-search__input").click()
    page.keyboard.type(words)
    page.wait_for_function(
        "document.querySelector('.md-search-result__meta').innerText.match(/\\d/)"
    )
    found = page.locator(".md-search-result__link").first
    found.wait_for(timeout=20_000)
    where = (found.get_attribute("href") or "").split("?")[0]
    assert where.removeprefix(f"file://{site}/").startswith(first)
    if first == "systems/":
        page.goto(where)
        assert "H100" in page.locator("article").inner_text()


def test_a_button_copies_the_lines_that_load(page: Page, site: Path) -> None:
    page.goto(f"file://{site}/systems/expanse.html")
    page.locator("button.md-code__button").first.click()
    page.evaluate("document.body.prepend(document.createElement('textarea'))")
    page.locator("textarea").first.focus()
    page.keyboard.press("Control+V")
    assert "module load mvapich-stack/" in page.locator("textarea").first.input_value()


@pytest.mark.parametrize("name", ["index", "systems/index", "systems/expanse", "software/lammps"])
def test_a_phone_is_wide_enough(page: Page, site: Path, name: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"file://{site}/{name}.html")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, f"{name} is {width} wide"
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["index", "systems/index", "systems/expanse", "software/lammps", "policy", "recipes"]
)
def test_keys_and_screen_readers_reach_everything(
    page: Page, site: Path, name: str, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"file://{site}/{name}.html")
    wrong = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in wrong] == []
