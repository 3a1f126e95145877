"""Known vulnerabilities: what is vulnerable, how bad it is, and what the gate makes of it."""

from __future__ import annotations

import json
import zipfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_tree import debian, put

from mvstack.image import osv, vulnerabilities
from mvstack.image.packages import Distribution
from mvstack.image.severity import ORDER, severity
from mvstack.image.vulnerabilities import Accepted, Gate, Report
from mvstack.support.errors import InvalidInput, Missing

TODAY = date(2026, 11, 21)
HIGH = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"  # 7.5
LOW = "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"  # 1.8
Row = dict[str, Any]


def entry(
    identity: str,
    package: str,
    *events: Row,
    ecosystem: str = "Debian:12",
    vector: str = HIGH,
    **more: Any,
) -> Row:
    affected: Row = {
        "package": {"ecosystem": ecosystem, "name": package},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, *events]}],
    }
    row: Row = {"id": identity, "modified": "2026-11-20T10:00:00Z", "affected": [affected], **more}
    return row | ({"severity": [{"type": "CVSS_V3", "score": vector}]} if vector else {})


def database(folder: Path, *entries: Row) -> Path:
    for row in entries:
        put(folder, f"{row['id']}.json", json.dumps(row))
    return folder


def asked(root: Path, path: Path | None, **gate: Any) -> Report:
    return vulnerabilities.report(root, path, Gate(**gate), TODAY)


def test_what_is_fixed_and_what_is_not(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    path = database(
        tmp_path / "osv",
        entry("CVE-1", "openssh", {"fixed": "1:9.2p1-2+deb12u3"}),  # installed is the fixed one
        entry("CVE-2", "openssh", {"fixed": "1:9.2p1-2+deb12u4"}, aliases=["DSA-1-1"]),
        entry("CVE-3", "bash"),  # no fix yet
        entry("CVE-4", "bash", {"last_affected": "5.2.15-1"}),
        entry("CVE-5", "linux", {"fixed": "6.1.200-1"}),  # the signed kernel carries it
        entry("CVE-6", "openssh", {"fixed": "1:99"}, ecosystem="Debian:11"),
        entry("CVE-7", "openssh", {"fixed": "1:99"}, withdrawn="2026-11-01T00:00:00Z"),
        entry("CVE-8", "gone"),  # removed from the image
        entry("CVE-9", "openssh-server", {"fixed": "1:99"}),  # no source package
    )
    found = asked(root, path)
    assert found.state == "failed"
    assert [(one.id, one.package, one.installed, one.fixed) for one in found.vulnerabilities] == [
        ("CVE-2", "openssh", "1:9.2p1-2+deb12u3", "1:9.2p1-2+deb12u4"),
        ("CVE-3", "bash", "5.2.15-2", ""),
        ("CVE-5", "linux", "6.1.192-2", "6.1.200-1"),
    ]
    assert found.vulnerabilities[0].binaries == ["openssh-server"]
    assert found.blocking == ["CVE-2 in openssh", "CVE-3 in bash", "CVE-5 in linux"]
    assert asked(root, path, threshold="critical").state == "passed"


def test_a_range_may_begin_and_end_more_than_once(tmp_path: Path) -> None:
    events = [{"fixed": "2"}, {"introduced": "3"}, {"fixed": "4"}]
    affected = entry("CVE-1", "x", *events)["affected"][0]
    said = {version: osv.affects(affected, version, "dpkg") for version in "12345"}
    assert said == {"1": "2", "2": None, "3": "4", "4": None, "5": None}
    assert osv.affects({"versions": ["7"]}, "7", "dpkg") == ""
    assert osv.affects({"versions": ["7"]}, "8", "dpkg") is None
    other = {"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}
    assert osv.affects(other, "7", "dpkg") is None


def test_without_a_database_nothing_has_passed(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    none = asked(root, None)
    assert (none.state, none.database) == ("unknown", None)
    other = database(tmp_path / "osv", entry("CVE-1", "bash", ecosystem="Ubuntu:22.04:LTS"))
    assert asked(root, other).state == "unknown"
    assert "holds nothing for Debian GNU/Linux 12" in asked(root, other).why
    (tmp_path / "empty").mkdir()
    with pytest.raises(Missing, match="no entry"):
        asked(root, tmp_path / "empty")
    with pytest.raises(Missing, match="no such database"):
        asked(root, tmp_path / "none")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"id": "CVE-1"}', "[" * 100_000])
def test_an_entry_that_cannot_be_read_is_no_small_matter(tmp_path: Path, text: str) -> None:
    path = database(tmp_path / "osv", entry("CVE-1", "dash"))
    put(path, "CVE-2.json", text)
    with pytest.raises(InvalidInput, match=r"CVE-2\.json"):
        asked(debian(tmp_path / "root"), path)


def test_a_zip_is_read_as_the_folder_is_and_its_hash_is_of_its_contents(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    path = database(tmp_path / "osv", entry("CVE-1", "bash"), entry("CVE-2", "dash"))
    packed = tmp_path / "all.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in path.iterdir():
            archive.write(file, file.name)
    assert asked(root, packed) == asked(root, path)
    about = asked(root, packed).database
    assert about and (about.entries, about.date) == (2, "2026-11-20T10:00:00Z")
    database(path, entry("CVE-3", "dash"))
    changed = asked(root, path).database
    assert changed and changed.sha256 != about.sha256
    with pytest.raises(InvalidInput, match="no zip"):
        asked(root, put(tmp_path, "broken.zip", "PK"))


def test_an_old_database_is_told_of(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    path = database(tmp_path / "osv", entry("CVE-1", "dash"))
    assert asked(root, path).state == "passed"
    assert not any("days old" in note for note in asked(root, path).notes)
    later = vulnerabilities.report(root, path, Gate(), TODAY + timedelta(days=30))
    assert later.state == "passed"
    assert "the database is 31 days old: its newest entry is of 2026-11-20" in later.notes


def exception(**changes: Any) -> Accepted:
    row = {"id": "CVE-1", "package": "bash", "until": TODAY, "why": "not reachable", "by": "me"}
    return Accepted(**row | changes)


def test_exceptions(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    path = database(tmp_path / "osv", entry("DSA-1-1", "bash", {"fixed": "9"}, aliases=["CVE-1"]))

    def with_rows(*rows: Accepted) -> Report:
        return asked(root, path, accepted=rows)

    assert with_rows(exception()).state == "passed"  # by the alias, on its last day
    assert with_rows(exception()).accepted == ["DSA-1-1 in bash until 2026-11-21: not reachable"]
    assert with_rows(exception(id="DSA-1-1")).state == "passed"
    late = with_rows(exception(until=TODAY - timedelta(days=1)))
    assert (late.state, late.expired) == ("failed", ["CVE-1 in bash, on 2026-11-20"])
    assert late.unused == []
    other = with_rows(exception(package="dash"), exception(id="CVE-2"))
    assert other.state == "failed"
    assert other.unused == ["CVE-1 in dash", "CVE-2 in bash"]


def test_the_report_is_written_and_reads_back(tmp_path: Path) -> None:
    path = database(tmp_path / "osv", entry("CVE-1", "bash"))
    found = asked(debian(tmp_path / "root"), path)
    found.write(tmp_path / "vulnerabilities.json")
    text = (tmp_path / "vulnerabilities.json").read_text()
    assert Report.model_validate_json(text) == found
    assert json.loads(text)["vulnerabilities"][0]["severity"] == "high"


@pytest.mark.parametrize(
    ("row", "affected", "expected"),
    [
        ({"severity": [{"type": "CVSS_V3", "score": HIGH}]}, {}, "high"),
        ({"severity": [{"type": "CVSS_V3", "score": LOW}]}, {}, "low"),
        (
            {"severity": [{"type": "CVSS_V2", "score": "AV:N/AC:L/Au:N/C:C/I:C/A:C"}]},
            {},
            "critical",
        ),
        (
            {
                "severity": [
                    {"type": "CVSS_V3", "score": LOW},
                    {
                        "type": "CVSS_V4",
                        "score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N",
                    },
                ]
            },
            {},
            "critical",
        ),
        ({"severity": [{"type": "Ubuntu", "score": "medium"}]}, {}, "medium"),
        ({"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/nonsense"}]}, {}, "unknown"),
        ({}, {"ecosystem_specific": {"urgency": "unimportant"}}, "low"),
        ({}, {"ecosystem_specific": {"urgency": "high**"}}, "high"),
        ({}, {"ecosystem_specific": {"urgency": "not yet assigned"}}, "unknown"),
        ({"database_specific": {"severity": "MODERATE"}}, {}, "medium"),
        ({"summary": "Important: kernel security update"}, {}, "high"),
        ({}, {}, "unknown"),
    ],
)
def test_severity(row: Row, affected: Row, expected: str) -> None:
    assert severity(row, affected) == expected


def test_a_severity_that_nobody_gave_is_in_the_way(tmp_path: Path) -> None:
    root = debian(tmp_path / "root")
    path = database(tmp_path / "osv", entry("CVE-1", "bash", vector=""))
    for threshold in ORDER:
        assert asked(root, path, threshold=threshold).state == "failed"


@pytest.mark.parametrize(
    ("ecosystem", "of", "fits"),
    [
        ("Debian:12", ("debian", "12"), True),
        ("Debian:12", ("debian", ""), False),
        ("Ubuntu:22.04:LTS", ("ubuntu", "22.04"), True),
        ("Ubuntu:25.10", ("ubuntu", "25.10"), True),
        ("Ubuntu:Pro:22.04:LTS", ("ubuntu", "22.04"), False),
        ("AlmaLinux:8", ("almalinux", "8.10"), True),
        ("AlmaLinux:9", ("almalinux", "8.10"), False),
        ("Rocky Linux:9", ("rocky", "9.4"), True),
        ("Red Hat:enterprise_linux:9::baseos", ("rhel", "9.4"), True),
        ("Debian:12", ("arch", "12"), False),
    ],
)
def test_ecosystems(ecosystem: str, of: tuple[str, str], fits: bool) -> None:
    assert osv.belongs(ecosystem, Distribution(*of, "")) is fits


def test_the_exceptions_of_the_repository_are_well_formed() -> None:
    assert all(row.why and row.by for row in vulnerabilities.read_accepted())


GOOD = (
    'accepted:\n  - {id: CVE-1, package: bash, until: 2026-12-31, why: "not reachable", by: me}\n'
)


def test_exceptions_are_read_and_each_error_is_told_with_its_line(tmp_path: Path) -> None:
    def read(text: str) -> list[Accepted]:
        return vulnerabilities.read_accepted(put(tmp_path, "accepted.yaml", text))

    assert read(GOOD) == [exception(until=date(2026, 12, 31))]
    for old, new, said in (
        ("2026-12-31", "soon", "until"),
        ("2026-12-31", "2026-02-30", "day is out of range"),
        ("until: 2026-12-31, ", "", "until: this field must be given"),
        ("not reachable", "no", "why"),
        ("by: me", "by: ''", "by"),
        ("package", "packages", "did you mean package"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read(GOOD.replace(old, new))


WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=30)


@given(WORDS, WORDS, st.dates(date(2000, 1, 1), date(2100, 1, 1)), WORDS, WORDS)
def test_any_exception_is_read_as_written_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    identity: str,
    package: str,
    until: date,
    why: str,
    by: str,
) -> None:
    row = {"id": identity, "package": package, "why": why, "by": by}
    fields = ", ".join(
        f"{name}: {json.dumps(text, ensure_ascii=False)}" for name, text in row.items()
    )
    text = f"accepted:\n  - {{{fields}, until: {until}}}\n"
    file = put(tmp_path_factory.getbasetemp(), "any.yaml", text)
    try:
        found = vulnerabilities.read_accepted(file)
    except InvalidInput as error:
        assert not all((identity.strip(), package.strip(), by.strip(), len(why) >= 10))
        assert all("any.yaml:2" in problem.where for problem in error.problems)
    else:
        assert [(one.until, one.id, one.why) for one in found] == [(until, identity.strip(), why)]
