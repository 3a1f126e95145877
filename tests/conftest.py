"""Says by name what was skipped and why, so that no skip is silent.

Pytest's own list groups skips by line; this one names each test. `tests/run` sets
``MVSTACK_TEST_SUMMARY`` to a file that is to hold the same list and the counts, and prints it last.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: time is measured in benchmarks/, never asserted.
settings.register_profile("mvstack", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mvstack")

COUNTED = {"passed": ("passed", "xfailed"), "failed": ("failed", "error", "xpassed")}


def pytest_configure(config: pytest.Config) -> None:
    # A shell's `&` has its children ignore Ctrl-C, and so would all that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes more than a few seconds (-m 'not slow')")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    skips = [f"{test.nodeid}: {_reason(test)}" for test in stats.get("skipped", [])]
    if left_out := len(stats.get("deselected", [])):
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
