"""Node-name-maps, which name switches by their GUIDs: read, and mended where parsers stumble."""

import re
from itertools import count

_LINE = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,16})[\s:=,]+(.*)")


def cleaned(text: str) -> tuple[dict[str, str], dict[int, str]]:
    """The names by GUID (16 digits), no two the same, and by its number each line that was mended.

    infiniband-diags read on where others, such as OSU INAM, give up: at blank lines, say.
    """
    names, mends = dict[str, str](), dict[int, str]()
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        body = re.sub(r"#.*", "", line.lstrip("\ufeff")).strip()
        found = _LINE.fullmatch(body)
        name = (
            re.sub(r"[^A-Za-z0-9._:;/+-]+", "_", found[2].strip("\"' ")).strip("_") if found else ""
        )
        if not found or not name:
            what = "no GUID and name" if body else "a comment" if "#" in line else "a blank line"
            mends[number] = f"{what}: left out"
            continue
        guid = found[1].lower().zfill(16)
        if guid in names:
            mends[number] = f"GUID 0x{guid} has the name {names[guid]} already: left out"
            continue
        taken = set(names.values())
        names[guid] = next(
            one for n in count(1) if (one := name if n == 1 else f"{name}-{n}") not in taken
        )
        if line != (good := f'0x{guid} "{names[guid]}"'):
            mends[number] = f"now {good}" + (" (CR)" if line.endswith("\r") else "")
    return names, mends


def written(names: dict[str, str]) -> str:
    """A node-name-map."""
    return "".join(f'0x{guid} "{name}"\n' for guid, name in names.items())
