"""Provider and transports, read from what MPICH 4.0.2 and UCX 1.13.1 printed."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from fabric import providers, transports  # noqa: E402

OFI = (ROOT / "data" / "validate" / "summary_ofi.txt").read_text()
UCX = (ROOT / "data" / "validate" / "summary_ucx.txt").read_text()


def test_the_provider_in_use_and_its_parts():
    assert providers(OFI) == {"tcp;ofi_rxm", "tcp", "ofi_rxm"}


def test_a_candidate_is_not_the_provider_in_use():
    considered = "\n".join(line for line in OFI.splitlines() if line.startswith("provider:"))
    assert "provider: tcp" in considered
    assert providers(considered) == set()


def test_the_transports_of_the_endpoints():
    assert transports(UCX) == {"self", "sysv", "posix", "cma"}


def test_each_says_nothing_of_the_other():
    assert providers(UCX) == set()
    assert transports(OFI) == set()
