"""Read the sources of easyconfigs with EasyBuild's own parser."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mvstack.sources.spec import SHA256, Known, SourceSpec, known_sources
from mvstack.support.errors import InvalidInput, Problem, relative

_TARBALL = "%(name)s-%(version)s.tar.gz"  # of an extension that names no source
_LEFT = re.compile(r"%\(\w+\)s")
_BUNDLES = ("PythonBundle", "AnyPythonBundle")  # EasyBuild's, and ours in easyconfigs/easyblocks


def specs_from_easyconfigs(
    paths: Iterable[Path], policy: dict[str, Known] | None = None
) -> list[SourceSpec]:
    """The sources that the easyconfigs ``paths`` name, each file once, in their order.

    ``policy`` is what is known beyond them; if None, environments/policy/sources.yaml. Patches
    stand beside an easyconfig and are no sources; one from git without a hash is EasyBuild's alone.
    Raises InvalidInput with every error of all files: no easyconfig, a source without a SHA-256,
    a template that cannot be filled, two easyconfigs that disagree on the hashes of one file.
    """
    known = known_sources() if policy is None else policy
    found: dict[tuple[str, str], SourceSpec] = {}
    places: dict[str, SourceSpec] = {}  # software under two names may be of one file
    problems: list[Problem] = []
    for path in paths:
        try:
            specs = list(_specs(path, known))
        except InvalidInput as error:
            problems += error.problems
            continue
        for spec in specs:
            first = found.setdefault((spec.software, spec.filename), spec)
            same = [first, *(places.setdefault(url, spec) for url in spec.urls)]
            for first in [one for one in same if set(one.hashes) != set(spec.hashes)][:1]:
                problems.append(
                    Problem(
                        f"{spec.filename} has other hashes than in {first.recipe}",
                        spec.recipe,
                        found=", ".join(spec.hashes),
                        allowed=", ".join(first.hashes),
                        todo="give one file the same checksums in every easyconfig",
                    )
                )
    if problems:
        raise InvalidInput(*problems)
    return list(found.values())


def _specs(path: Path, known: dict[str, Known]) -> Iterator[SourceSpec]:
    values, text = _parsed(path)
    match = re.search(r"^\s*checksums\s*=", text, re.MULTILINE)
    line = f":{text.count(chr(10), 0, match.start()) + 1}" if match else ""
    where = f"{relative(path)}{line}"
    for part, templates in _parts(values):
        listed = part.get("sources") or []
        for number, row in enumerate([listed] if isinstance(listed, (str, dict)) else listed):
            entry = row if isinstance(row, dict) else {"filename": row}
            filename = _filled(entry.get("filename", ""), templates, where)
            git = {
                key: _filled(value, templates, where) if isinstance(value, str) else value
                for key, value in entry.get("git_config", {}).items()
            }
            try:
                hashes = _hashes(part.get("checksums"), number, filename, where)
            except InvalidInput:
                if git:  # a clone with its history is never packed twice into the same bytes
                    continue
                raise
            about = known.get(filename) or Known.model_construct(pypi=_on_pypi(part, values))
            yield SourceSpec(
                values["name"],
                values["version"],
                filename,
                hashes,
                () if git else _urls({**part, **entry}, templates, filename, where),
                about,
                where,
                number if part is values else -1,
                git,
            )


def _on_pypi(part: dict[str, Any], values: dict[str, Any]) -> str:
    """The requirement by which pip finds a Python package; "" for what is not on PyPI."""
    urls = [str(url) for url in part.get("source_urls") or []]
    easyblock = str(values.get("easyblock") or "")
    python = easyblock == "PythonPackage" or easyblock in _BUNDLES
    bundle = easyblock in _BUNDLES and part is values
    if bundle or not (any("pypi" in url for url in urls) or (python and not urls)):
        return ""
    return f"{part['name']}=={part['version']}"


def _parsed(path: Path) -> tuple[dict[str, Any], str]:
    """The values of an easyconfig, read as EasyBuild reads it (Python, with its constants)."""
    # here: half a second of every command's start
    from easybuild.framework.easyconfig.parser import EasyConfigParser
    from easybuild.tools.build_log import EasyBuildError

    if not path.is_file():
        raise InvalidInput("there is no such easyconfig", relative(path))
    try:
        parser = EasyConfigParser(filename=str(path))
        values: dict[str, Any] = parser.get_config_dict()
    except (EasyBuildError, UnicodeDecodeError) as error:
        what = f"EasyBuild cannot read it: {getattr(error, 'msg', error)}"
        raise InvalidInput(what, relative(path)) from None
    if missing := [name for name in ("name", "version") if not values.get(name)]:
        what = "not an easyconfig: it has no " + " and no ".join(missing)
        raise InvalidInput(what, relative(path))
    return values, parser.rawcontent


def _parts(values: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """What names sources, with its templates: the easyconfig, a bundle's components, extensions."""
    own = _templates(values)
    yield values, own
    parts = [tuple(row) for row in values.get("components") or []]
    default = values.get("exts_default_options") or {}
    for row in values.get("exts_list") or []:
        if isinstance(row, str) or len(row) < 2:
            continue  # comes with the software itself
        more = {**default, **(row[2] if len(row) > 2 else {})}
        if not more.get("nosource"):
            more["sources"] = more.get("sources") or [more.get("source_tmpl") or _TARBALL]
            parts.append((row[0], row[1], more))
    for name, version, more in parts:
        named = {"name": name, "version": version}
        yield {**more, **named}, own | _templates(named)


def _templates(values: dict[str, Any]) -> dict[str, str]:
    """The templates of EasyBuild that file names and urls of sources are written with."""
    name, version = str(values["name"]), str(values["version"])
    numbers = [*version.split("."), "", ""]
    found = {
        "name": name,
        "namelower": name.lower(),
        "nameletter": name[0],
        "nameletterlower": name[0].lower(),
        "version": version,
        "version_major_minor": ".".join(version.split(".")[:2]),
        "version_major_minor_patch": ".".join(version.split(".")[:3]),
        **dict(zip(("version_major", "version_minor", "version_patch"), numbers, strict=False)),
    }
    if toolchain := values.get("toolchain"):
        found |= {f"toolchain_{key}": toolchain.get(key, "") for key in ("name", "version")}
        found |= {"versionsuffix": "", "versionprefix": ""}
    own = ("versionsuffix", "versionprefix", "github_account", "bitbucket_account")
    return found | {key: values[key] for key in own if key in values}


def _filled(text: str, templates: dict[str, str], where: str) -> str:
    filled = _LEFT.sub(lambda match: templates.get(match[0][2:-2], match[0]), text)
    if left := _LEFT.search(filled):
        raise InvalidInput(
            f"{left[0]} cannot be filled in a source's name or url",
            where,
            found=text,
            allowed=", ".join(f"%({name})s" for name in sorted(templates)),
        )
    return filled


def _hashes(checksums: Any, number: int, filename: str, where: str) -> tuple[str, ...]:
    """The SHA-256 alternatives of source ``number``, in every form that EasyBuild takes."""
    rows = [checksums] if isinstance(checksums, (str, dict)) else list(checksums or ())
    # a dictionary of file names may stand for all files, or for each
    named = [row[filename] for row in rows if isinstance(row, dict) and filename in row]
    entry = next(iter([*named[:1], *rows[number : number + 1]]), None)
    if isinstance(entry, tuple) and entry[:1] == ("sha256",):
        entry = entry[1:]
    alternatives = entry if isinstance(entry, (tuple, list)) else (entry,)
    hashes = tuple(one for one in alternatives if isinstance(one, str))
    if not hashes or not all(SHA256.fullmatch(one) for one in hashes):
        raise InvalidInput(
            f"source {filename} has no SHA-256",
            where,
            found=repr(entry),
            allowed="64 hexadecimal digits in lower case, or a tuple of such alternatives",
            todo="add it to checksums: `eb --inject-checksums` computes it from the file",
        )
    return tuple(dict.fromkeys(hashes))


def _urls(
    entry: dict[str, Any], templates: dict[str, str], filename: str, where: str
) -> tuple[str, ...]:
    download = _filled(entry.get("download_filename") or filename, templates, where)
    listed = entry.get("source_urls") or []
    urls = [_filled(url, templates, where) for url in listed if isinstance(url, str)]
    # as EasyBuild joins them: nothing between `…?file=` and the name
    return tuple(url + ("" if url.endswith(("=", "/")) else "/") + download for url in urls)
