"""What the readers of a machine say besides values: notes for a person, and how each was found."""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_FOUND = "not found: fill in"


@dataclass
class Findings:
    """Notes (unknown, contradictory, worth knowing) and, for each field, how it was found."""

    notes: list[str] = field(default_factory=list)
    how: dict[str, str] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Say ``text`` once, as one printable line whatever a file held."""
        line = one_line(text)
        if line not in self.notes:
            self.notes.append(line)

    def found(self, name: str, how: str) -> None:
        """Say how the field ``name`` was found."""
        self.how[name] = one_line(how)


def one_line(text: str) -> str:
    """``text`` on one line without control characters, at most 400 characters."""
    cleaned = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(cleaned.split())
    return line if len(line) <= 400 else line[:397] + "..."
