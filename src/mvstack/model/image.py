"""What a partition's file says of its cloud image: what it starts from, and for which machine."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from mvstack.model.base import Strict
from mvstack.model.text import Text

Cloud = Literal["azure", "aws", "qemu"]
NicStack = Literal["inbox", "doca", "efa", "none"]
GpuStack = Literal["nvidia", "none"]
Family = Literal["debian", "ubuntu", "rhel"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

#: What each cloud needs to name the image that ours starts from.
BASES: dict[str, tuple[str, ...]] = {
    "azure": ("publisher", "offer", "sku", "version"),
    "aws": ("owner", "name"),
    "qemu": ("suite",),
}


class Base(Strict):
    """The image that ours starts from, by a name that does not move.

    Azure: publisher, offer, sku and version of the marketplace. AWS: owner (an account) and name of
    the AMI. QEMU: the distribution's suite, which is made a disk from its packages.
    """

    publisher: Text | None = None
    offer: Text | None = None
    sku: Text | None = None
    version: Text | None = None
    owner: Text | None = None
    name: Text | None = None
    suite: Text | None = None


class Links(Strict):
    """The network links that the first start must see: how many, and how fast in Gb/s each is."""

    count: Annotated[int, Field(ge=1)] = 1
    gbps: Annotated[int, Field(ge=1)]


class Size(Strict):
    """Another size of machine that an image serves: what differs there from the partition."""

    cores: Annotated[int, Field(ge=1)] | None = None
    memory_gb: Annotated[int, Field(ge=1)] | None = None
    links: Links | None = None

    def figures(self) -> dict[str, str]:
        """The lines of /etc/mvapich-stack/expected that are others on this size."""
        links = {"links": self.links.count, "link_gbps": self.links.gbps} if self.links else {}
        rows = {"cores": self.cores, "memory_gb": self.memory_gb, **links}
        return {name: str(value) for name, value in rows.items() if value is not None}


class ImageSpec(Strict):
    """The image of one partition.

    ``machine`` is the VM size or instance type it is for, ``serves`` other sizes that it fits too,
    and ``built_on`` a smaller or cheaper one that it can be built on. ``disk_gb`` is the root disk.
    ``secure_boot`` is decided here, with the reason.
    """

    cloud: Cloud
    machine: Text
    serves: dict[Text, Size] = Field(default_factory=dict)
    built_on: Text | None = None
    base: Base
    disk_gb: Annotated[int, Field(ge=1)]
    nic_stack: NicStack = "inbox"
    gpu_stack: GpuStack = "none"
    secure_boot: bool = False
    secure_boot_why: Text
    links: Links | None = None
    source: Text
    why: Text = ""

    @model_validator(mode="after")
    def _base_fits_the_cloud(self) -> Self:
        given = sorted(self.base.model_dump(exclude_none=True))
        wanted = sorted(BASES[self.cloud])
        if given != wanted:
            raise ValueError(
                f"base: a cloud {self.cloud} needs {', '.join(wanted)}; given are "
                f"{', '.join(given) or 'none'}"
            )
        for word in ("version", "name"):
            value = getattr(self.base, word)
            if value in ("latest", "*") or (value and "*" in value):
                raise ValueError(
                    f"base.{word}: {value} moves; name one version, so that two builds start alike"
                )
        return self
