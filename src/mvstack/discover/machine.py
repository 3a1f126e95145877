"""What was found on a machine. ``None`` always means: not found, or contradictory (see notes)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mvstack.model.base import EMPTY_LIST
from mvstack.support.errors import Problem
from mvstack.support.units import one_line

NOT_FOUND = "not found: fill in"
LONGEST = 400  # characters of a note

REQUIRED = (
    *("os", "scheduler", "cores", "memory_gb", "target"),
    *("fabric", "gpu", "launcher", "compiler"),
)
"""The fields that a system file cannot do without."""


class Part(BaseModel):
    """A part of a machine; equal when all fields are."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)


class Accelerator(Part):
    """GPUs of one vendor; one that shows itself as several devices (MI250X: 2) counts as such."""

    gpu: str
    count: int
    models: list[str] = EMPTY_LIST
    arch: str = ""
    driver: str = ""


class Compiler(Part):
    """A compiler and its companions; an empty path is one that is missing."""

    name: str
    version: str
    path: str
    cxx: str = ""
    fortran: str = ""

    @property
    def complete(self) -> bool:
        """Whether C, C++ and Fortran are all there."""
        return bool(self.path and self.cxx and self.fortran)


class Library(Part):
    """A package of the system that an MPI can be built on.

    ``variants`` are what it was built with, in Spack's words; ``idle`` what it has and what does
    nothing on this machine (providers without an adapter, a Slurm without a controller); ``told``
    is what is not certain of it.
    """

    name: str
    version: str | None = None
    prefix: str
    headers: bool = True
    providers: list[str] = EMPTY_LIST
    transports: list[str] = EMPTY_LIST
    mpi: list[str] = EMPTY_LIST
    variants: str = ""
    told: str = ""
    idle: list[str] = EMPTY_LIST


TODO = {
    "compiler": "install gcc, g++ and gfortran, or put them first on PATH: all is built with gcc"
}


class Machine(Part):
    """A machine as it was found: each reader of this folder fills in the fields that it knows.

    The fields up to ``externals`` are those of a system file's partition and mean the same;
    the others say more: ``programs`` are libraries without headers, known by their tools, ``whole``
    is what all of the machine has of ``cores`` and ``memory_gb`` where we may use less. ``how``
    tells for a field how it was found, ``notes`` what is unknown, contradictory or worth knowing.
    """

    hostname: str = ""
    os: str | None = None
    scheduler: str | None = None
    cores: int | None = None
    memory_gb: int | None = None
    cma: bool = True
    target: str | None = None
    fabric: str | None = None
    nic: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    gpu_arch: str | None = None
    gpu_buffers: str | None = None
    launcher: str | None = None
    pmi: str | None = None
    file_systems: list[str] = EMPTY_LIST
    compiler: Compiler | None = None
    externals: list[Library] = EMPTY_LIST
    programs: list[Library] = EMPTY_LIST

    os_title: str = ""
    whole: dict[Literal["cores", "memory_gb"], int] = Field(default_factory=dict)
    hypervisor: str = ""
    cpu: str = ""
    accelerators: list[Accelerator] = EMPTY_LIST
    compilers: list[Compiler] = EMPTY_LIST
    notes: list[str] = EMPTY_LIST
    how: dict[str, str] = Field(default_factory=dict)

    def note(self, text: str) -> None:
        """Say ``text`` once, as one printable line whatever a file held."""
        line = one_line(text, LONGEST)
        if line not in self.notes:
            self.notes.append(line)

    def found(self, name: str, how: str, value: Any = None) -> None:
        """Set the field ``name`` to ``value`` and say how that was found, or why there is none."""
        setattr(self, name, value)
        self.how[name] = one_line(how, LONGEST)

    def problems(self) -> list[Problem]:
        """One problem for each field that a system file needs and that was not found."""
        return [
            Problem(
                f"{name} was not found",
                where=self.hostname or "this machine",
                because=self.how.get(name, ""),
                todo=TODO.get(name, f"give `{name}:` by hand in the system file"),
            )
            for name in REQUIRED
            if getattr(self, name) is None
        ]
