"""Write the modules of what Spack installed: the names, places and help of the EasyBuild builder's.

Spack's own generator is not used: it names modules after specs, puts the compiler and the MPI of a
hierarchy where it likes, and two devices of one MPI version get one name.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.cache.elf import listed
from mvstack.plan.types import MpiBuild, Package, Plan
from mvstack.render.partition import other_bytes
from mvstack.render.spack import compiler_of
from mvstack.render.templates import generated, lua, template
from mvstack.support import hashes
from mvstack.support.home import DATA

FOLDER = DATA / "modulefiles"
# Where every dynamic loader looks, should its own program not tell.
USUAL = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
WRAPPERS = {"MPICC": "mpicc", "MPICXX": "mpicxx", "MPIFC": "mpifort"}
WRAPPERS |= {"MPIF77": "mpif77", "MPIF90": "mpif90"}
Change = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)  # what it is of the plan holds mappings
class Part:
    """One module to write: its key, where it stands, and what of the plan it is of.

    ``spec`` is what Spack was asked for, "" for a compiler of the system; ``over`` the key of the
    MPI that it stands on.
    """

    key: str
    file: str
    spec: str
    over: str = ""
    build: MpiBuild | None = None
    package: Package | None = None

    @property
    def transport(self) -> str:
        """The package of the library beneath an MPI's device."""
        below = self.build.spack.get("transport") if self.build else None
        return str(below["package"]) if below else ""


def parts_of(plan: Plan) -> list[Part]:
    """The modules of a plan, below first: the compiler's, then each MPI's with its packages'."""
    level = f"{plan.compiler['name']}/{plan.compiler['version']}"

    def packages(folder: str, mpi: str) -> list[Part]:
        return [
            Part(
                f"{mpi} {one.module}".lstrip(),
                f"{folder}/{one.module}.lua",
                one.spack,
                mpi,
                package=one,
            )
            for one in plan.packages
            if one.mpi == mpi and one.spack
        ]

    parts = [Part(level, f"Core/{level}.lua", ""), *packages(f"Compiler/{level}", "")]
    for build in plan.mpi:
        file = f"Compiler/{level}/{build.module}.lua"
        parts.append(Part(build.module, file, build.spack["spec"], build=build))
        parts += packages(f"MPI/{level}/{build.module}", build.module)
    return parts


def content_of(plan: Plan, part: Part, installed: str, inputs: str) -> str:
    """The hash of all that decides a module file: what is installed, the plan, the writer."""
    row = part.build or part.package
    return hashes.of(
        installed,
        inputs,
        {**row.__dict__} if row else plan.compiler,
        plan.tree,
        *((FOLDER / f"{one}.lua.j2").read_text() for one in ("spack-module", "tuned")),
        template("mpi_usage.txt", plan=plan, build=part.build) if part.build else "",
        hashes.normalised(Path(__file__).read_text()),
    )


def module_text(plan: Plan, part: Part, found: dict[str, Any], loader: frozenset[str]) -> str:
    """The module file of ``part``; ``found`` is what inside/modules.py said of it ({} for none).

    ``loader`` are the folders that the dynamic loader searches anyway.
    """
    changes: list[Change] = [(row[0], row[1], row[2], row[3]) for row in found.get("changes", ())]
    level = f"{plan.compiler['name']}/{plan.compiler['version']}"
    values = {"usage": "", "family": "", "opens": "", "tuned": ""}
    values["homepage"] = found.get("homepage", "")
    if build := part.build:
        changes = _mpi_changes(build, changes, found, loader)
        values |= {
            "name": build.product,
            "description": f"{build.software} {build.version} ({build.device}) for "
            f"{build.fabric}, over {build.transport['library']}.",
            "usage": template("mpi_usage.txt", plan=plan, build=build).strip(),
            "family": "mpi",
            "tuned": template("tuned.lua", build=build),
            "opens": f"{plan.tree}/modules/MPI/{level}/{build.module}",
        }
    elif one := part.package:
        values |= {
            "name": one.module.partition("/")[0],
            "description": f"{one.name} {one.version}: {one.title}.",
            "usage": other_bytes(one),
        }
    else:
        changes = _compiler_changes(plan)
        whose = "site's" if plan.compiler["origin"] == "external" else "distribution's"
        values |= {
            "name": plan.compiler["name"],
            "description": f"GNU compilers {plan.compiler['version']} (C, C++, Fortran), built by "
            "this stack."
            if compiler_of(plan)["built"]
            else f"The {whose} GNU compilers (C, C++, Fortran), used from where they are.",
            "family": "compiler",
            "homepage": "https://gcc.gnu.org/",
            "opens": f"{plan.tree}/modules/Compiler/{level}",
        }
    return template(
        "spack-module.lua",
        generated=generated(plan),
        prefix=found.get("prefix", ""),
        changes=[_lua(change) for change in changes],
        **values,
    )


def _compiler_changes(plan: Plan) -> list[Change]:
    """The compiler's programs, and its folders where those are not the system's."""
    prefix = compiler_of(plan)["prefix"]
    folders = (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib64"), ("MANPATH", "share/man"))
    changes: list[Change] = []
    if prefix != "/usr":
        changes += [("prepend_path", name, f"{prefix}/{folder}", ":") for name, folder in folders]
    programs = (("CC", "gcc"), ("CXX", "g++"), ("FC", "gfortran"))
    return [*changes, *(("setenv", name, program, ":") for name, program in programs)]


def _mpi_changes(
    build: MpiBuild, changes: list[Change], found: dict[str, Any], loader: frozenset[str]
) -> list[Change]:
    """What an MPI's module sets: what Spack says, compilers, transport, the plan's settings.

    The transport's folder goes behind the MPI's own; where the loader looks anyway it is left out,
    for LD_LIBRARY_PATH would put it before what other programs were linked with.
    """
    prefix = found["prefix"]
    beneath: list[Change] = [
        ("prepend_path", "LD_LIBRARY_PATH", folder, ":")
        for folder in found["transport"]
        if folder not in loader
    ]
    usual = {"MPI_HOME": prefix, "MPI_ROOT": prefix}
    usual |= {name: f"{prefix}/bin/{program}" for name, program in WRAPPERS.items()}
    usual |= {name: setting["value"] for name, setting in build.environment.items()}
    kept = [one for one in changes if one[0] != "setenv" or one[1] not in usual]
    return [*beneath, *kept, *(("setenv", name, value, ":") for name, value in usual.items())]


def _lua(change: Change) -> str:
    """One statement of a module file."""
    what, name, value, separator = change
    words = [name] if what == "unsetenv" else [name, value]
    if separator != ":" and what.endswith("_path"):
        words.append(separator)
    return f"{what}({', '.join(map(lua, words))})"


def loader_folders() -> frozenset[str]:
    """The folders that this machine's dynamic loader searches without being told."""
    return frozenset({*USUAL, *(str(Path(path).parent) for _, path in listed())})
