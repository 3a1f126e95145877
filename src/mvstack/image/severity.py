"""How bad a vulnerability is: the bands of the CVSS standard, from what its entry says."""

from collections.abc import Iterator
from typing import Any, Literal

from mvstack.image.extras import load

Band = Literal["none", "low", "medium", "high", "critical"]
Severity = Literal["unknown"] | Band
# CVSS 3.1 section 5 and 4.0 section 6, "Qualitative Severity Rating Scale": from this score on.
_BANDS: tuple[tuple[float, Band], ...] = (
    (9.0, "critical"),
    (7.0, "high"),
    (4.0, "medium"),
    (0.1, "low"),
    (0.0, "none"),
)
ORDER: tuple[Band, ...] = ("none", "low", "medium", "high", "critical")
# Words of the distributions. Debian's urgencies: its security tracker's page on them; Red Hat's
# family: access.redhat.com, "Severity ratings"; Ubuntu's priorities: its CVE page; GitHub's.
_WORDS: dict[str, Band] = {
    "unimportant": "low",
    "negligible": "low",
    "low": "low",
    "moderate": "medium",
    "medium": "medium",
    "important": "high",
    "high": "high",
    "critical": "critical",
}


def severity(entry: dict[str, Any], affected: dict[str, Any]) -> Severity:
    """The severity of an OSV entry for one of its ``affected`` packages.

    A CVSS vector counts most, the worst when there are several; then the distribution's own word.
    Nothing of both is *unknown*, which is not *low*.
    """
    rows = [*_rows(affected), *_rows(entry)]
    scores = [score for kind, text in rows if (score := _score(kind, text)) is not None]
    if scores:
        return next(name for least, name in _BANDS if max(scores) >= least)
    for word in _words(entry, affected, rows):
        if found := _WORDS.get(word.strip().strip("*").lower()):
            return found
    return "unknown"


def _rows(part: dict[str, Any]) -> list[tuple[str, str]]:
    rows = part.get("severity")
    return [
        (str(row.get("type")), str(row.get("score")))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]


def _score(kind: str, vector: str) -> float | None:
    """The base score of a CVSS vector; None when it is none, or broken."""
    if kind not in ("CVSS_V2", "CVSS_V3", "CVSS_V4"):
        return None
    cvss = load("cvss")
    try:
        return float(getattr(cvss, kind.replace("_V", ""))(vector).scores()[0])
    except cvss.CVSSError:
        return None


def _words(
    entry: dict[str, Any], affected: dict[str, Any], rows: list[tuple[str, str]]
) -> Iterator[str]:
    yield from (text for kind, text in rows if not kind.startswith("CVSS"))
    for part in (affected, entry):
        for name in ("ecosystem_specific", "database_specific"):
            more = part.get(name)
            if isinstance(more, dict):
                yield from (str(more[key]) for key in ("urgency", "severity") if key in more)
    # AlmaLinux says it in the first word of the summary, as in "Important: kernel security update"
    yield str(entry.get("summary", "")).partition(":")[0]
