"""environments/policy/images.yaml: what every image gets, where, and why."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.image import Cloud, Family, GpuStack, NicStack, Sha256
from mvstack.model.vocabulary import Fabric, Launcher
from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

HttpsUrl = Annotated[str, StringConstraints(pattern=r"^https://[^\s]+$")]


class ImageWhen(Strict):
    """A condition. A field that is left out holds for every image; lists mean *one of*."""

    cloud: list[Cloud] = EMPTY_LIST
    family: list[Family] = EMPTY_LIST
    os: list[str] = EMPTY_LIST
    fabric: list[Fabric] = EMPTY_LIST
    nic_stack: list[NicStack] = EMPTY_LIST
    gpu_stack: list[GpuStack] = EMPTY_LIST
    machine: list[str] = EMPTY_LIST
    launcher: list[Launcher] = EMPTY_LIST


class _Row(Strict):
    when: ImageWhen = Field(default_factory=ImageWhen)
    why: str
    source: str


class Sysctl(_Row):
    """One kernel setting below /proc/sys, set at every start."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.]+$")]
    value: str


class Limit(_Row):
    """One resource limit of every user, soft and hard."""

    item: Literal["memlock", "stack", "nofile", "nproc", "core"]
    value: str


class KernelFile(_Row):
    """One file below /sys, written at every start."""

    path: Annotated[str, StringConstraints(pattern=r"^/sys/")]
    value: str


class ModuleOption(_Row):
    """An option of a kernel module, which holds whenever the module is loaded."""

    module: str
    option: str
    value: str


class Module(_Row):
    """A kernel module that is loaded at every start."""

    name: str


class DropIn(_Row):
    """A whole file, for what none of the other tables says."""

    path: Annotated[str, StringConstraints(pattern=r"^/etc/")]
    text: str


class Unit(_Row):
    """A systemd unit and the state it is put in, where it exists.

    ``required``: the image fails its test when the unit does not exist.
    """

    name: str
    state: Literal["enabled", "disabled", "masked"]
    required: bool = False


class Packages(_Row):
    """Packages of the distribution, under the names of each family.

    ``early``: they are on QEMU's base disk already, because an emulated machine takes minutes to
    unpack them; elsewhere, and in a second run, this makes no difference. ``test``: they are there
    while the test in the image runs, and are taken away again.
    """

    debian: list[str] = EMPTY_LIST
    ubuntu: list[str] = EMPTY_LIST
    rhel: list[str] = EMPTY_LIST
    early: bool = False
    test: bool = False


class Download(_Row):
    """A file that is not the distribution's: fetched by URL, refused when its hash differs."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    version: str
    url: HttpsUrl
    sha256: Sha256


class Listening(_Row):
    """A port that may be open in the image; every other is an error of the image."""

    port: Annotated[int, Field(ge=1, le=65535)]
    protocol: Literal["tcp", "udp"] = "tcp"
    anywhere: bool = False


class Head(_Row):
    """The size of a cluster's head: it compiles, and computes nothing."""

    machine: str


class Step(_Row):
    """One provisioning step: a script of images/provision, in the order of this table."""

    script: Annotated[str, StringConstraints(pattern=r"^[0-9]{2}-[a-z0-9-]+\.sh$")]


class FamilyOf(Strict):
    """A family of distributions: which there are, and who one logs in as on each cloud.

    ``others`` are distributions of the family whose images have another user.
    """

    like: list[str]
    users: dict[Cloud, str]
    others: dict[str, dict[Cloud, str]] = Field(default_factory=dict)


class ImagePolicy(Strict):
    """images.yaml of the policy."""

    families: dict[Family, FamilyOf]
    steps: list[Step]
    sysctl: list[Sysctl]
    limits: list[Limit]
    kernel_files: list[KernelFile]
    module_options: list[ModuleOption]
    modules: list[Module]
    drop_ins: list[DropIn]
    units: list[Unit]
    packages: list[Packages]
    downloads: list[Download]
    listening: list[Listening]
    heads: list[Head]


@cache
def image_policy() -> ImagePolicy:
    """The policy. Raises InvalidInput with file and line for what is wrong in it."""
    return validated(ImagePolicy, read_yaml(home().file("policy", "images.yaml")))
