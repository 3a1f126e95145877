"""Says by name what was skipped and why, so that no skip is silent.

Pytest's own list groups skips by line; this one names each test. `tests/run` sets
``MVSTACK_TEST_SUMMARY`` to a file that is to hold the same list and the counts, and prints it last.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: time is measured in benchmarks/, never asserted.
settings.register_profile("mvstack", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("mvstack"), max_examples=20)
settings.load_profile("mvstack")

# Files that take minutes, the longest first: so none of them is begun when all others are done.
LONG = (
    "test_image_qemu",
    "test_ci_site",
    "test_bundle_spack",
    "test_ci_handing_over_spack",
    "test_spack_binaries",
    "test_apps_small",
    "test_ci_handing_over",  # takes what the first of these has built
)
LEFT_OUT = "mvstack_left_out"
LEFT_OUT_KEY = pytest.StashKey[int]()
COUNTED = {"passed": ("passed", "xfailed"), "failed": ("failed", "error", "xpassed")}


HOME_KEY = pytest.StashKey[Path]()
# Of the user's own settings only what says how packages and sources are reached.
KEPT_FILES = {
    "GIT_CONFIG_GLOBAL": (".gitconfig", ".config/git/config"),
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "PIP_CACHE_DIR": (".cache/pip",),
    "NPM_CONFIG_USERCONFIG": (".npmrc",),
    "NPM_CONFIG_CACHE": (".npm",),
    "PYENV_ROOT": (".pyenv",),
}
OURS = ("MVSTACK_", "EASYBUILD_", "SPACK_", "RFM_", "XDG_")


def _leave_the_users_home() -> Path | None:
    """Give the tests a home of their own: no test depends on what a person has done before.

    Without it `sources add --accept-hash`, which the docs recommend, changed what tests saw.
    Returns the new home; None in a process that was started by one that has it already.
    """
    if "MVSTACK_TEST_HOME" in os.environ:
        return None
    user = Path.home()
    for name, places in KEPT_FILES.items():
        found = [user / place for place in places if (user / place).exists()]
        if found and name not in os.environ:
            os.environ[name] = str(found[0])
    for name in [*os.environ]:
        if name.startswith(OURS) and not name.startswith("MVSTACK_TEST_"):
            del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="mvstack-test-home-"))
    os.environ |= {"HOME": str(home), "MVSTACK_TEST_HOME": str(home)}
    return home


def pytest_unconfigure(config: pytest.Config) -> None:
    if home := config.stash.get(HOME_KEY, None):
        shutil.rmtree(home, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    if home := _leave_the_users_home():
        config.stash[HOME_KEY] = home
    # A shell's `&` has its children ignore Ctrl-C, and so would all that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes more than a few seconds (-m 'not slow')")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Tell the process that writes the summary, where this one only runs tests for it."""
    if items and (told := getattr(items[0].config, "workeroutput", None)) is not None:
        told[LEFT_OUT] = told.get(LEFT_OUT, 0) + len(items)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    # every worker leaves out the same
    told = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT_KEY] = told.get(LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    skips = [f"{test.nodeid}: {_reason(test)}" for test in stats.get("skipped", [])]
    left_out = len(stats.get("deselected", [])) or terminalreporter.config.stash.get(
        LEFT_OUT_KEY, 0
    )
    if left_out:
        skips.append(f"{left_out} tests were left out by -m or -k")
    if skips:
        terminalreporter.section("what was skipped, each with its reason")
        for line in skips:
            terminalreporter.line(line)
    if path := os.environ.get("MVSTACK_TEST_SUMMARY"):
        counts = {
            word: sum(len(stats.get(kind, [])) for kind in kinds) for word, kinds in COUNTED.items()
        }
        counts["skipped"] = len(stats.get("skipped", []))
        lines = [f"  skipped  {skip}" for skip in skips]
        lines.append("tests: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _reason(test: pytest.TestReport | pytest.CollectReport) -> str:
    """The words of ``pytest.skip`` and ``skipif``, without pytest's own prefix."""
    text = test.longrepr[2] if isinstance(test.longrepr, tuple) else str(test.longrepr)
    return text.removeprefix("Skipped: ")


@pytest.fixture(autouse=True)
def _every_host_is_asked() -> None:
    """Each test stands for a command of its own, which asks every host once."""
    if download := sys.modules.get("mvstack.sources.download"):
        download.SILENT.clear()
