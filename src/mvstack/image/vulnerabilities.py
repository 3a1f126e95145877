"""Known vulnerabilities of an image's packages, and the gate that they have to pass.

Without a database the state is *unknown*, never *passed*: nobody looked.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from mvstack.image import osv
from mvstack.image.packages import Distribution, Manager, Package, distribution, installed, manager
from mvstack.image.severity import ORDER, Band, Severity, severity
from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import InvalidInput
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA

ACCEPTED = DATA / "images" / "vulnerabilities-accepted.yaml"
DAYS = 7  # a database older than this is told of
State = Literal["unknown", "passed", "failed"]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Accepted(Strict):
    """A vulnerability that may stay in a package until a day, why, and who says so."""

    id: Text
    package: Text
    until: date
    why: Annotated[str, StringConstraints(min_length=10)]
    by: Text


class Vulnerability(Strict):
    """One vulnerability of one source package of the image.

    ``aliases`` are its other names (a notice's CVEs); ``binaries`` the installed packages that
    carry it; ``fixed`` the first version without it, "" when there is none yet.
    """

    id: str
    aliases: list[str]
    package: str
    binaries: list[str]
    installed: str
    fixed: str
    severity: Severity


class Database(Strict):
    """Which database was asked: its newest change, its hash, how many entries are for the image."""

    date: str
    sha256: str
    entries: int


class Report(Strict):
    """vulnerabilities.json. ``why`` says in words what decided the ``state``.

    ``blocking``, ``accepted``, ``expired`` and ``unused`` name vulnerabilities and exceptions as
    ``ID in PACKAGE``; ``notes`` is what a reader must know besides.
    """

    state: State
    why: str
    distribution: str
    threshold: Band
    asked: date
    database: Database | None = None
    vulnerabilities: list[Vulnerability] = EMPTY_LIST
    blocking: list[str] = EMPTY_LIST
    accepted: list[str] = EMPTY_LIST
    expired: list[str] = EMPTY_LIST
    unused: list[str] = EMPTY_LIST
    notes: list[str] = EMPTY_LIST

    def write(self, path: Path) -> None:
        """Write vulnerabilities.json."""
        write_atomically(path, self.model_dump_json(indent=1) + "\n")


class _File(Strict):
    accepted: list[Accepted] = EMPTY_LIST


def read_accepted(path: Path = ACCEPTED) -> list[Accepted]:
    """images/vulnerabilities-accepted.yaml. Raises InvalidInput with every error of it."""
    return validated(_File, read_yaml(path)).accepted


def find(
    entries: Iterable[osv.Row], packages: Sequence[Package], by: Manager, of: Distribution
) -> list[Vulnerability]:
    """What the entries of a database say of the packages, sorted.

    Debian's and Ubuntu's entries name source packages; those of RPM families name either kind.
    Raises InvalidInput for an entry whose versions cannot be compared.
    """
    carriers = _carriers(packages, by)
    found: dict[tuple[str, str, str], Vulnerability] = {}
    for entry in entries:
        for affected in _for(entry, of) if not entry.get("withdrawn") else ():
            name = str(affected["package"].get("name"))
            for version, binaries in carriers.get(name, {}).items():
                try:
                    fixed = osv.affects(affected, version, by)
                except (ValueError, TypeError, AttributeError) as error:
                    where = f"{entry['id']}, {name}"
                    raise InvalidInput(f"its versions cannot be used: {error}", where) from None
                if fixed is not None:
                    found[entry["id"], name, version] = Vulnerability(
                        id=entry["id"],
                        aliases=_aliases(entry),
                        package=name,
                        binaries=sorted(binaries),
                        installed=version,
                        fixed=fixed,
                        severity=severity(entry, affected),
                    )
    return [found[key] for key in sorted(found)]


def _carriers(packages: Sequence[Package], by: Manager) -> dict[str, dict[str, set[str]]]:
    """Name as a database says it → version → the installed packages that carry it."""
    carriers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for package in packages:
        for name, version in package.sources:
            carriers[name][version].add(package.name)
    if by == "rpm":  # by the binary's own name and version where both would do
        for package in packages:
            carriers[package.name] = defaultdict(set)
        for package in packages:
            carriers[package.name][package.version].add(package.name)
    return carriers


def _for(entry: osv.Row, of: Distribution) -> list[osv.Row]:
    rows = [row for row in entry.get("affected", []) if isinstance(row.get("package"), dict)]
    return [row for row in rows if osv.belongs(str(row["package"].get("ecosystem")), of)]


def _aliases(entry: osv.Row) -> list[str]:
    names = [*(entry.get("aliases") or []), *(entry.get("upstream") or [])]
    return sorted({str(name) for name in names})


@dataclass(frozen=True)
class Gate:
    """What an image has to pass.

    What is as bad as ``threshold`` or worse, or of unknown severity, fails unless one of
    ``accepted`` that has not expired says that it may stay (its last day is ``until``).
    """

    threshold: Band = "high"
    accepted: Sequence[Accepted] = ()


def report(root: Path, database: Path | None, gate: Gate, today: date) -> Report:
    """The vulnerabilities of the image at ``root``, through the gate.

    Raises InvalidInput and Missing for a database that cannot be used, and Missing for an image
    whose packages cannot be read.
    """
    of = distribution(root)
    head = Report(
        state="unknown",
        why="there is no database: nobody looked",
        distribution=of.name,
        threshold=gate.threshold,
        asked=today,
    )
    if database is None:
        return head
    contents = osv.read(database)
    relevant = [entry for entry in contents.entries if _for(entry, of)]
    about = Database(date=contents.date, sha256=contents.sha256, entries=len(relevant))
    if not relevant:
        why = f"the database holds nothing for {of.name}: nobody looked"
        return head.model_copy(update={"why": why, "database": about})
    packages = installed(root)
    found = find(relevant, packages, "dpkg" if manager(root) == "dpkg" else "rpm", of)
    past = judged(found, gate, today)
    return head.model_copy(
        update={
            "state": "failed" if past["blocking"] else "passed",
            "why": f"{len(found)} known, {len(past['blocking'])} of them in the way",
            "database": about,
            "vulnerabilities": found,
            **past,
            "notes": [*_age(contents.date, today), _NOT_ASKED],
        }
    )


_NOT_ASKED = "only the distribution's packages were looked up: no database knows the stack's own"


def _age(newest: str, today: date) -> list[str]:
    try:
        then = datetime.fromisoformat(newest).astimezone(UTC).date()
    except ValueError:
        return [f"the age of the database is unknown: {newest}"]
    age = (today - then).days
    return [f"the database is {age} days old: its newest entry is of {then}"] if age > DAYS else []


def judged(found: Sequence[Vulnerability], gate: Gate, today: date) -> dict[str, list[str]]:
    """What is in the way on that day, and what became of each exception, as a Report says it."""
    bad = {"unknown", *ORDER[ORDER.index(gate.threshold) :]}
    blocking, accepted, expired = [], [], []
    used: set[Accepted] = set()
    for one in found:
        rows = [row for row in gate.accepted if _meant(row, one)]
        used.update(rows)
        if one.severity not in bad:
            continue
        name = f"{one.id} in {one.package}"
        if good := [row for row in rows if today <= row.until]:
            accepted.append(f"{name} until {good[0].until}: {good[0].why}")
        else:
            blocking.append(name)
            expired += [f"{row.id} in {row.package}, on {row.until}" for row in rows]
    unused = [f"{row.id} in {row.package}" for row in gate.accepted if row not in used]
    return {"blocking": blocking, "accepted": accepted, "expired": expired, "unused": unused}


def _meant(row: Accepted, one: Vulnerability) -> bool:
    return row.id in (one.id, *one.aliases) and row.package in (one.package, *one.binaries)
