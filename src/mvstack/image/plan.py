"""What one partition's image holds: the policy's rows that are for it, and the base. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from mvstack.image.policy import ImagePolicy, ImageWhen, Packages
from mvstack.model.image import Cloud, Family, ImageSpec
from mvstack.model.system import Partition, System
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.words import listed, nearest

#: The source block of images/*.pkr.hcl that builds for a cloud.
SOURCES = {"azure": "azure-arm.image", "aws": "amazon-ebs.image", "qemu": "qemu.image"}


@dataclass(frozen=True)
class ImagePlan:
    """One image: what it starts from, what is put into it, and what a test must find there."""

    system: str
    partition: str
    title: str
    release: str
    tree: str
    os: str
    family: str
    cloud: str
    source: str
    machine: str
    serves: dict[str, dict[str, str]]
    built_on: str
    base: dict[str, str]
    user: str
    disk_gb: int
    nic_stack: str
    gpu_stack: str
    secure_boot: bool
    secure_boot_why: str
    steps: list[dict[str, Any]]
    packages: list[str]
    early: list[str]
    test_packages: list[str]
    launch: list[dict[str, str]]
    sysctl: list[dict[str, Any]]
    limits: list[dict[str, Any]]
    kernel_files: list[dict[str, Any]]
    module_options: list[dict[str, Any]]
    modules: list[dict[str, Any]]
    drop_ins: list[dict[str, Any]]
    units: list[dict[str, Any]]
    downloads: list[dict[str, Any]]
    listening: list[dict[str, Any]]
    hardware: dict[str, str]

    @property
    def name(self) -> str:
        """Of its folders and of its cloud images: ``azure-hbv4-hpc``."""
        return f"{self.system}-{self.partition}"

    def of_size(self, machine: str) -> "ImagePlan":
        """The same image on another size of machine that it serves. Raises InvalidInput."""
        if machine in ("", self.machine):
            return self
        if machine not in self.serves:
            known = [self.machine, *self.serves]
            raise InvalidInput(
                f"the image {self.name} does not serve {machine}",
                "--size",
                allowed=listed(known),
                nearest=nearest(machine, known),
            )
        here = {**self.hardware, **self.serves[machine], "machine": machine}
        return replace(self, machine=machine, hardware=here)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the order in which a person reads it."""
        return dict(self.__dict__)


def make_image(system: System, plan: Plan, policy: ImagePolicy) -> ImagePlan:
    """The image of ``plan``'s partition.

    Raises Refused when the partition's file says nothing of an image, or its OS is of no family
    that images are made of.
    """
    part = system.partitions[plan.partition]
    where = f"{system.name}/{plan.partition}"
    if part.image is None:
        todo = f"describe one under partitions.{plan.partition}.image (docs/images.md says how)"
        if part.image_from:
            todo = f"name {part.image_from}, whose image serves these machines, too (`--size`)"
        file = f"environments/systems/{system.name}.yaml"
        raise Refused(f"{where} has no image", file, todo=todo)
    spec = part.image
    family = family_of(plan.os, policy)
    if family is None:
        known = sorted(word for one in policy.families.values() for word in one.like)
        raise Refused(
            f"no image can be made of {plan.os}",
            where,
            allowed=", ".join(known),
            todo="add the family to environments/policy/images.yaml, with its packages",
        )
    asked = _Facts(spec, family, plan.os, part)
    rows = [row for row in policy.packages if _holds(row.when, asked)]
    return ImagePlan(
        system=system.name,
        partition=plan.partition,
        title=plan.title,
        release=plan.release,
        tree=plan.tree,
        os=plan.os,
        family=family,
        cloud=spec.cloud,
        source=SOURCES[spec.cloud],
        machine=spec.machine,
        serves={name: size.figures() for name, size in spec.serves.items()},
        built_on=spec.built_on or spec.machine,
        base=spec.base.model_dump(exclude_none=True),
        user=_user(policy, family, plan.os, spec.cloud),
        disk_gb=spec.disk_gb,
        nic_stack=spec.nic_stack,
        gpu_stack=spec.gpu_stack,
        secure_boot=spec.secure_boot,
        secure_boot_why=spec.secure_boot_why,
        steps=_rows(policy.steps, asked),
        packages=_packages([row for row in rows if not row.test], family),
        early=_packages([row for row in rows if row.early], family),
        test_packages=_packages([row for row in rows if row.test], family),
        launch=[{"module": one.module, "launch": one.launch} for one in plan.mpi if not one.gone],
        sysctl=_rows(policy.sysctl, asked),
        limits=_rows(policy.limits, asked),
        kernel_files=_rows(policy.kernel_files, asked),
        module_options=_rows(policy.module_options, asked),
        modules=_rows(policy.modules, asked),
        drop_ins=_rows(policy.drop_ins, asked),
        units=_rows(policy.units, asked),
        downloads=_rows(policy.downloads, asked),
        listening=_rows(policy.listening, asked),
        hardware=_hardware(part, spec),
    )


def family_of(os: str, policy: ImagePolicy) -> Family | None:
    """The family of ``debian12``, ``almalinux8``, …; None when images are made of none such."""
    distribution = distribution_of(os)
    for name, family in policy.families.items():
        if distribution in family.like:
            return name
    return None


def distribution_of(os: str) -> str:
    """``debian`` of ``debian12``."""
    return os.rstrip("0123456789.")


def _user(policy: ImagePolicy, family: Family, os: str, cloud: Cloud) -> str:
    """Who one logs in as on the base image."""
    row = policy.families[family]
    return row.others.get(distribution_of(os), {}).get(cloud) or row.users[cloud]


@dataclass(frozen=True)
class _Facts:
    spec: ImageSpec
    family: str
    os: str
    part: Partition


def _holds(when: ImageWhen, asked: _Facts) -> bool:
    spec = asked.spec
    pairs: list[tuple[str, Iterable[str]]] = [
        (spec.cloud, when.cloud),
        (asked.family, when.family),
        (asked.part.fabric, when.fabric),
        (spec.nic_stack, when.nic_stack),
        (spec.gpu_stack, when.gpu_stack),
        (spec.machine, when.machine),
        (asked.part.launcher, when.launcher),
    ]
    if not all(value in allowed for value, allowed in pairs if allowed):
        return False
    return not when.os or any(fnmatchcase(asked.os, pattern) for pattern in when.os)


def _rows(rows: Iterable[Any], asked: _Facts) -> list[dict[str, Any]]:
    return [row.model_dump(exclude={"when"}) for row in rows if _holds(row.when, asked)]


def _packages(rows: Iterable[Packages], family: str) -> list[str]:
    return sorted({name for row in rows for name in getattr(row, family)})


def _hardware(part: Partition, spec: ImageSpec) -> dict[str, str]:
    """What the first start must see, as the lines of /etc/mvapich-stack/expected."""
    return {
        "cloud": spec.cloud,
        "machine": spec.machine,
        "cores": str(part.cores),
        "memory_gb": str(part.memory_gb),
        "fabric": part.fabric,
        "nic_stack": spec.nic_stack,
        "links": str(spec.links.count if spec.links else 0),
        "link_gbps": str(spec.links.gbps if spec.links else 0),
        "gpus": str(part.gpus),
        "gpu_model": part.gpu_model,
        "gpu_stack": spec.gpu_stack,
    }
