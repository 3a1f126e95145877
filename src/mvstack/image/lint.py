"""Our own rules for images/*.pkr.hcl, beside what `packer validate` finds. Pure but for reading.

Each rule is a defect that was seen in images elsewhere (facts/images.md): a variable that nobody
sets, a secret that is not marked as one, a thing that is made and carries no tag, a moving base, a
script fetched from the network, what is stripped for an old Packer and does not exist.
"""

from __future__ import annotations

import re
from typing import Any

from mvstack.image.strip import Modern, modern, strip, templates
from mvstack.support.errors import Problem

_SECRET = re.compile(r"secret|password|token|access_key")
#: By source: arguments that must be given, and why.
_MUST = {
    "azure-arm": {
        "azure_tags": "what a crashed build leaves behind is found by its tags",
        "secure_boot_enabled": "it is decided for each system, with the reason",
        "shared_gallery_image_version_exclude_from_latest": "a candidate is not `latest`",
        "image_version": "a moving base makes two builds differ",
    },
    "amazon-ebs": {
        "run_tags": "what a crashed build leaves behind is found by its tags",
        "run_volume_tags": "as run_tags",
        "snapshot_tags": "as run_tags",
        "encrypt_boot": "the disk is encrypted",
        "imds_support": "instances answer IMDSv2 alone",
        "ena_support": "EFA needs ENA",
    },
    "qemu": {"iso_checksum": "the base disk is known by its hash"},
}
_FETCHED = re.compile(r"(curl|wget)[^|\n]*\|\s*(sudo\s+)?(ba)?sh")


def lint(texts: dict[str, str] | None = None, newer: Modern | None = None) -> list[Problem]:
    """What is wrong with the templates; those of this repository when none are given."""
    import hcl2

    texts = templates() if texts is None else texts
    newer = modern() if newer is None else newer
    problems: list[Problem] = []
    parsed: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        try:
            parsed[name] = hcl2.loads(text)
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            problems.append(Problem("is no HCL", f"images/{name}", found=said))
    if problems:
        return problems
    problems += _variables(texts, parsed)
    problems += _sources(parsed)
    problems += _stripped(texts, newer)
    problems += [
        Problem(
            "a script is taken from the network and run",
            f"images/{name}",
            found=found.group(0),
            todo="put it among the downloads of environments/policy/images.yaml, with its hash",
        )
        for name, text in texts.items()
        for found in _FETCHED.finditer(text)
    ]
    return problems


def _name(word: str) -> str:
    return str(word).strip('"')


def _variables(texts: dict[str, str], parsed: dict[str, dict[str, Any]]) -> list[Problem]:
    declared: dict[str, tuple[str, dict[str, Any]]] = {}
    for file, data in parsed.items():
        for block in data.get("variable", []):
            for name, body in block.items():
                declared[_name(name)] = (file, body)
    used = {name for text in texts.values() for name in re.findall(r"\bvar\.([a-z0-9_]+)", text)}
    problems = [
        Problem(f"var.{name} is used and not declared", "images/", todo="images/variables.pkr.hcl")
        for name in sorted(used - set(declared))
    ]
    problems += [
        Problem(f"variable {name} is declared and not used", f"images/{declared[name][0]}")
        for name in sorted(set(declared) - used - {"release", "qemu_seed"})
    ]
    problems += [
        Problem(f"variable {name} holds a secret and is not marked sensitive", f"images/{file}")
        for name, (file, body) in sorted(declared.items())
        if _SECRET.search(name) and not body.get("sensitive")
    ]
    return problems


def _sources(parsed: dict[str, dict[str, Any]]) -> list[Problem]:
    problems = []
    for file, data in parsed.items():
        for block in data.get("source", []):
            for kind, named in block.items():
                for body in named.values():
                    given = {_name(name) for name in body}
                    problems += [
                        Problem(
                            f"source {_name(kind)}: {name} must be given",
                            f"images/{file}",
                            because=why,
                        )
                        for name, why in _MUST.get(_name(kind), {}).items()
                        if name not in given
                    ]
    return problems


def _stripped(texts: dict[str, str], newer: Modern) -> list[Problem]:
    """What modern.yaml names exists, is gone from the stripped templates, and nothing else is."""
    problems = []
    after = strip(texts, newer)
    for source, names in [*newer.arguments.items(), *newer.blocks.items()]:
        for name in names:
            if not any(re.search(rf"^\s*{name}\b", text, re.M) for text in texts.values()):
                problems.append(
                    Problem(
                        f"{source}: {name} stands there and in no template", "images/modern.yaml"
                    )
                )
    gone = set(newer.files) - set(texts)
    problems += [Problem(f"{name} is no template", "images/modern.yaml") for name in sorted(gone)]
    named = {
        name for names in [*newer.arguments.values(), *newer.blocks.values()] for name in names
    }
    for file, text in after.items():
        lost = _assigned(texts[file]) - _assigned(text) - named
        inside = {"http_endpoint", "http_tokens", "http_put_response_hop_limit"}
        if lost - inside:
            problems.append(
                Problem(f"stripping took {', '.join(sorted(lost - inside))} too", f"images/{file}")
            )
    return problems


def _assigned(text: str) -> set[str]:
    return set(re.findall(r"^\s*([a-z_0-9]+)\s*[={]", text, re.M))
