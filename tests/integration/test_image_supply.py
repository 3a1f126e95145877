"""Supply chain over a real Debian root: what we say of it, held against what other programs say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "unit")]

from image_tree import put  # noqa: E402
from images.base import base  # noqa: E402
from images.needs import needs  # noqa: E402
from sbom_valid import errors  # noqa: E402

from mvstack.image import manifest, packages, vulnerabilities  # noqa: E402
from mvstack.image.audit import audit  # noqa: E402
from mvstack.image.components import Component, Source  # noqa: E402
from mvstack.image.sbom import Subject, sbom  # noqa: E402

SUBJECT = Subject("mvapich-stack-qemu-debian12-node", "2026.11.0", 1795000000)
SOURCE = Source("mpich.tar.gz", "a" * 64, "Debian source archive", False, "repacked")
STACK = [Component("MPICH", "4.0.2", "", "mpich/4.0.2-ofi", "", (SOURCE,))]


@pytest.fixture(scope="module")
def root() -> Path:
    """A Debian root with openssh-server, shared with other tests: it is only read."""
    needs()
    return base()


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """The same root, to be changed."""
    subprocess.run(["cp", "-a", str(root), str(tmp_path / "copy")], check=True)
    return tmp_path / "copy"


def dpkg_query(root: Path, *words: str) -> list[str]:
    command = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_packages_are_those_that_dpkg_lists(root: Path) -> None:
    fields = "${Package} ${Version} ${Architecture} ${source:Package} ${source:Version}\n"
    found = packages.installed(root)
    ours = [f"{p.name} {p.version} {p.arch} {p.source} {p.source_version}" for p in found]
    assert sorted(ours) == sorted(dpkg_query(root, "--show", f"--showformat={fields}"))
    assert packages.distribution(root).id == "debian"


def test_every_path_of_the_root_is_in_the_manifest(root: Path, copy: Path) -> None:
    command = ["find", ".", "-printf", "/%P\\0"]
    paths = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    entries = manifest.collect(root)
    assert sorted(entry.path for entry in entries) == sorted(paths.split("\0")[:-1])
    link = next(entry for entry in entries if entry.path == "/bin")
    assert (link.kind, link.content) == ("link", "usr/bin")
    su = next(entry for entry in entries if entry.path == "/usr/bin/su")
    sums = subprocess.run(["sha256sum", root / "usr/bin/su"], capture_output=True, text=True)
    assert (su.content, su.mode) == (sums.stdout.split()[0], 0o4755)
    assert manifest.compare(entries, manifest.collect(copy)) == []
    (copy / "usr/bin/su").chmod(0o755)
    found = manifest.compare(entries, manifest.collect(copy))
    assert [(one.path, one.what) for one in found] == [("/usr/bin/su", "differs in mode")]


def test_the_audit_passes_only_what_was_generalised(copy: Path) -> None:
    failing = {one.path for one in audit(copy) if one.fails}
    keys = {f"/etc/ssh/{path.name}" for path in (copy / "etc/ssh").glob("ssh_host_*")}
    assert keys and keys <= failing
    # what generalising does, for what this root holds
    for path in (
        *(copy / "etc/ssh").glob("ssh_host_*"),
        copy / "etc/resolv.conf",
        copy / "etc/hostname",
    ):
        path.unlink(missing_ok=True)
    for path in (copy / "var/log").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(b"")
    put(copy, "/etc/machine-id")
    assert [one for one in audit(copy) if one.fails] == []
    shutil.copy2(copy / "usr/bin/su", copy / "usr/bin/also-su")
    assert [one.path for one in audit(copy) if one.fails] == ["/usr/bin/also-su"]


def test_the_sbom_is_valid_whole_and_the_same_for_a_copy(
    root: Path, copy: Path, tmp_path: Path
) -> None:
    before = manifest.collect(root)
    made = sbom(root, SUBJECT, STACK)
    assert manifest.collect(root) == before
    assert errors(made, tmp_path / "out") == []
    assert sbom(copy, SUBJECT, STACK) == made
    cyclonedx, spdx = json.loads(made.cyclonedx), json.loads(made.spdx)
    rows = set(dpkg_query(root, "--show", "--showformat=${Package} ${Version}\n"))
    assert rows <= {f"{row['name']} {row['version']}" for row in cyclonedx["components"]}
    assert rows <= {f"{row['name']} {row.get('versionInfo')}" for row in spdx["packages"]}
    assert "MPICH" in {row["name"] for row in cyclonedx["components"]}
    assert "MPICH" in {row["name"] for row in spdx["packages"]}


def test_each_source_package_is_looked_up(root: Path, tmp_path: Path) -> None:
    known = {source for package in packages.installed(root) for source in package.sources}
    for number, (name, version) in enumerate(sorted(known)):
        for mended, kind in ((version, "fixed"), (f"{version}+1", "open")):
            events = [{"introduced": "0"}, {"fixed": mended}]
            affected = {
                "package": {"ecosystem": "Debian:12", "name": name},
                "ranges": [{"type": "ECOSYSTEM", "events": events}],
                "ecosystem_specific": {"urgency": "high"},
            }
            row = {"id": f"T-{number}-{kind}", "modified": "2026-11-20T00:00:00Z"}
            text = json.dumps(row | {"affected": [affected]})
            put(tmp_path, f"osv/{row['id']}.json", text)
    gate = vulnerabilities.Gate()
    found = vulnerabilities.report(root, tmp_path / "osv", gate, date(2026, 11, 21))
    assert found.state == "failed"
    assert {(one.package, one.installed) for one in found.vulnerabilities} == known
    assert all(one.id.endswith("-open") for one in found.vulnerabilities)
