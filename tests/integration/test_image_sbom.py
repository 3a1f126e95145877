"""The SBOM: every package and every component, valid, and the same bytes for the same root."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from image_tree import debian, put, rpm_family
from sbom_valid import errors

from mvstack.image.components import Component, Facts, Source, components, known_facts
from mvstack.image.packages import installed
from mvstack.image.sbom import Subject, sbom
from mvstack.support.errors import CheckFailed, InvalidInput
from mvstack.support.home import DATA

SUBJECT = Subject("mvapich-stack-qemu-debian12-node", "2026.11.0", 1795000000)
SHA = "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860"
MPICH = Source("mpich.tar.gz", SHA, "Debian source archive", False, "repacked", "https://x.org/m")
HPCC = Source("hpcc.tar.gz", "a" * 64, "https://x.org/h", True, "", "https://x.org/h")
STACK = [
    Component("HPCC", "1.5.0", "benchmarks", "hpcc/1.5.0", "BSD-3-Clause", (HPCC,)),
    Component("MPICH", "4.0.2", "", "mpich/4.0.2-ofi", "LicenseRef-MPICH", (MPICH,)),
    Component("Two", "1", sources=(MPICH, HPCC)),
    Component("None", "1+2"),
]
PLAN = {
    "tree": "/opt/mvapich-stack/2026.11/local",
    "root": "/opt/mvapich-stack",
    "release": "2026.11",
    "compiler": {"name": "gcc", "version": "12.2.0"},
    "mpi": [{"software": "MPICH", "version": "4.0.2", "module": "mpich/4.0.2-ofi"}],
    "packages": [{"name": "HPCC", "version": "1.5.0", "title": "benchmarks"}],
}


def build(package: str, version: str, result: str = "built", **more: Any) -> dict[str, Any]:
    name = f"{package}-{version}.eb"
    module = f"{package.lower()}/{version}"
    row = {"package": package, "version": version, "module": module, "easyconfig": name}
    return {**row, "sources": [], "result": result, **more}


def recorded(**more: Any) -> dict[str, Any]:
    row = {"file": "mpich.tar.gz", "sha256": SHA, "place": "mirror (Debian source archive)"}
    return {**row, "upstream": False, "note": "repacked", **more}


def tree(folder: Path, *rows: dict[str, Any]) -> Path:
    put(folder, "records/plan.json", json.dumps(PLAN))
    put(folder, "records/builds.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    known = {row["easyconfig"]: "0" * 64 for row in rows if row["package"] != "Removed"}
    put(folder, "records/nodes.json", json.dumps(known))
    return folder


def test_components_are_what_the_records_of_the_tree_say(tmp_path: Path) -> None:
    source = tree(
        tmp_path,
        build("GCC", "12.2.0"),  # the distribution's own: it brings no bytes
        build("MPICH", "4.0.2", sources=[recorded(sha256="0" * 64)]),
        build("MPICH", "4.0.2", sources=[recorded()]),
        build("HPCC", "1.5.0", "cached", sources=[]),
        build("HPCC", "1.5.0", "failed"),
        build("Removed", "1", sources=[recorded()]),
    )
    facts = Facts({"mpich.tar.gz": "https://x.org/m"}, {"hpcc": "BSD-3-Clause"})
    assert components(source, facts) == [
        Component("HPCC", "1.5.0", "benchmarks", "hpcc/1.5.0", "BSD-3-Clause"),
        Component("MPICH", "4.0.2", "", "mpich/4.0.2", "", (MPICH,)),
    ]


def test_records_that_cannot_be_read_are_no_empty_list(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no tree of a release"):
        components(tmp_path)
    source = tree(tmp_path, build("MPICH", "4.0.2"))
    with (source / "records/builds.jsonl").open("a") as stream:
        stream.write('{"package": "HP')
    with pytest.raises(InvalidInput, match=r"builds\.jsonl"):
        components(source)


def test_the_repository_knows_where_upstream_is_and_some_licences() -> None:
    facts = known_facts(sorted((DATA / "easyconfigs").rglob("MPICH-4.0.2*.eb")))
    assert facts.urls["mpich-4.0.2.tar.gz"].startswith("https://www.mpich.org/")
    assert facts.licences["mvapich"]


def stack_rows(cyclonedx: dict[str, Any], spdx: dict[str, Any]) -> None:
    """Assert that both documents hold STACK."""
    rows = {row["name"]: row for row in cyclonedx["components"] if row["bom-ref"][:7] == "mvapich"}
    assert sorted(rows) == ["HPCC", "MPICH", "None", "Two"]
    said = {row["name"]: row["value"] for row in rows["MPICH"]["properties"]}
    assert said["mvapich-stack:remark"] == "mpich.tar.gz: not upstream's bytes (repacked)"
    assert said["mvapich-stack:source"] == f"mpich.tar.gz sha256:{SHA}"
    assert "hashes" not in rows["MPICH"]["externalReferences"][0]
    assert rows["HPCC"]["externalReferences"][0]["hashes"][0]["content"] == "a" * 64
    assert rows["HPCC"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    other = {row["name"]: row for row in spdx["packages"]}
    assert {"HPCC", "MPICH", SUBJECT.name} <= {*other}
    purl = other["HPCC"]["externalRefs"][0]["referenceLocator"]
    assert "a" * 64 in purl and "https://x.org/h" in purl
    assert other["HPCC"]["licenseDeclared"] == "BSD-3-Clause"


def test_a_debian_image(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    made = sbom(root, SUBJECT, STACK)
    assert errors(made, tmp_path / "out") == []
    assert sbom(root, SUBJECT, STACK) == made
    cyclonedx, spdx = json.loads(made.cyclonedx), json.loads(made.spdx)
    stack_rows(cyclonedx, spdx)
    purls = {row.get("purl") for row in cyclonedx["components"]}
    package = "pkg:deb/debian/openssh-server@1:9.2p1-2%2Bdeb12u3"
    assert f"{package}?arch=amd64&distro=debian-12&upstream=openssh" in purls
    assert "gone" not in {row["name"] for row in [*cyclonedx["components"], *spdx["packages"]]}
    assert cyclonedx["metadata"]["timestamp"].startswith("2026-11-18T")
    assert spdx["creationInfo"]["created"].startswith("2026-11-18T")


def test_the_identity_of_the_documents_is_that_of_their_content(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    one, other = sbom(root, SUBJECT, STACK), sbom(root, SUBJECT, STACK[:1])
    for text, changed, name in (
        (one.cyclonedx, other.cyclonedx, "serialNumber"),
        (one.spdx, other.spdx, "documentNamespace"),
    ):
        assert json.loads(text)[name] != json.loads(changed)[name]


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not installed")
def test_an_image_of_an_rpm_family(tmp_path: Path) -> None:
    root = rpm_family(tmp_path / "root", tmp_path / "work")
    made = sbom(root, SUBJECT, STACK)
    assert errors(made, tmp_path / "out") == []
    assert sbom(root, SUBJECT, STACK) == made
    cyclonedx, spdx = json.loads(made.cyclonedx), json.loads(made.spdx)
    stack_rows(cyclonedx, spdx)
    name = "pkg:rpm/almalinux/mvtest@1.2-3.el9?arch=noarch&distro=almalinux-9.4&epoch=2"
    name += "&upstream=mvtest-1.2-3.el9.src.rpm"
    row = next(row for row in cyclonedx["components"] if row.get("purl") == name)
    assert row["licenses"] == [{"license": {"name": "GPLv2+ and BSD"}}]
    package = next(row for row in spdx["packages"] if row["name"] == "mvtest")
    assert package["versionInfo"] == "2:1.2-3.el9"
    assert package["licenseDeclared"] == "LicenseRef-GPLv2--and-BSD"


def test_a_package_that_syft_leaves_out_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = debian(tmp_path / "root")
    seen = installed(root)
    more = [*seen, replace(seen[0], name="unseen")]
    monkeypatch.setattr("mvstack.image.sbom.installed", lambda _: more)
    with pytest.raises(CheckFailed, match="left out 1 packages") as raised:
        sbom(root, SUBJECT, STACK)
    assert "unseen" in str(raised.value.problems[0])
