"""docs/images.md: what is in each image, for which machine, tested how and where. Derived."""

from __future__ import annotations

from typing import Any

from mvstack.image import manifest
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import make_image
from mvstack.image.policy import ImageWhen, image_policy
from mvstack.model.base import Strict, validated
from mvstack.model.load import load_release, load_system, system_names
from mvstack.model.policy import Policy
from mvstack.model.yamlfile import read_yaml
from mvstack.plan.make import make_plan
from mvstack.render.templates import template


class Row(Strict):
    """One image that was built and tested: when, where, how long it took, what passed."""

    image: str
    date: str
    where: str
    build: str
    tests: str
    commit: str


class Record(Strict):
    """images/record.yaml."""

    note: str
    record: list[Row]


def record() -> Record:
    """What was built and tested. Raises InvalidInput with file and line for what is wrong."""
    return validated(Record, read_yaml(TEMPLATES / "record.yaml"))


def images_page(policy: Policy) -> str:
    """The page, over all systems that describe images."""
    release, rules, known = load_release(), image_policy(), record()
    built = {row.image for row in known.record}
    images = []
    for name in system_names():
        system = load_system(name)
        for partition, part in system.partitions.items():
            if part.image is None:
                continue
            plan = make_plan(system, partition, release, policy)
            image = make_image(system, plan, rules)
            mpi = ", ".join(f"{one.product} {one.version} {one.device}" for one in plan.mpi)
            there = f"{name}/{partition}" in built
            far = "rendered, valid, built, tested" if there else "rendered, valid"
            images.append({"image": image, "mpi": mpi, "how_far": far})
    tables: list[tuple[Any, str, str, str]] = [
        (rules.sysctl, "Kernel settings", "name", "value"),
        (rules.kernel_files, "Kernel files", "path", "value"),
        (rules.limits, "Limits, soft and hard, of logins and services", "item", "value"),
        (rules.module_options, "Options of kernel modules", "option", "value"),
        (rules.modules, "Kernel modules loaded at every start", "name", ""),
        (rules.units, "Units", "name", "state"),
        (rules.listening, "Ports that may be open", "port", "protocol"),
    ]
    return template(
        "images.md",
        release=release.name,
        images=images,
        record=known.record,
        record_note=known.note,
        tables=[([row.model_dump() | {"when": row.when} for row in rows], *rest)
                for rows, *rest in tables],
        policy=rules,
        declared=manifest.read_declared(),
        when=condition,
    )  # fmt: skip


def condition(when: ImageWhen) -> str:
    """A row's condition in words: ``cloud aws; fabric infiniband or roce``; "" for every image."""
    given: dict[str, Any] = when.model_dump(exclude_defaults=True)
    return "; ".join(f"{name.replace('_', ' ')} {' or '.join(v)}" for name, v in given.items())
