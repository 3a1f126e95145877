"""What a recipe says, as far as it can be told without Spack."""

import io
import re
import tokenize
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

# What a recipe has by inheriting one of builtin's helpers, beside what it declares itself.
GIVEN: dict[str, dict[str, tuple[str, ...]]] = {
    "CudaPackage": {"cuda": ("true", "false"), "cuda_arch": ()},
    "ROCmPackage": {"rocm": ("true", "false"), "amdgpu_target": ()},
}
_VERSION = re.compile(r"\d+(?:\.\d[a-z0-9]*)+(?:-\d+)?")


@dataclass(frozen=True)
class Version:
    """One ``version(…)``; ``url`` is its own when it has one, ``commit`` a git commit."""

    name: str
    sha256: str
    url: str
    line: int
    commit: str = ""


@dataclass(frozen=True)
class Variant:
    """One ``variant(…)``. ``values`` is empty when it takes any word; ``when`` is its condition.

    A boolean variant has the values ``true`` and ``false``. ``conditional`` maps a value to the
    condition under which alone it exists.
    """

    name: str
    default: str
    values: tuple[str, ...]
    description: str
    line: int
    when: str = ""
    conditional: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def boolean(self) -> bool:
        """Whether it is written ``+name`` and ``~name``."""
        return self.values == ("true", "false")

    def words(self) -> list[str]:
        """Each value as a spec writes it: ``+cuda``, ``~cuda``; ``netmod=ofi``."""
        if self.boolean:
            return [f"+{self.name}", f"~{self.name}"]
        return [f"{self.name}={value}" for value in self.values]


@dataclass(frozen=True)
class Conflict:
    """One ``conflicts(…)`` or ``requires(…)`` with its message."""

    kind: str
    spec: str
    when: str
    message: str
    line: int


@dataclass(frozen=True)
class Recipe:
    """One package.py below spack-repo.

    ``builtin`` is the package of Spack's own repository that it inherits ("" when none).
    ``helpers`` are the classes of Spack that it inherits (build systems, CudaPackage). ``patches``
    are files with what they are applied to (``@4.0``; "" for all), ``needs`` the specs of what it
    depends on, with the condition.
    """

    path: Path
    class_name: str
    line: int
    docstring: str
    builtin: str
    helpers: tuple[str, ...]
    url: str
    manual: bool
    methods: frozenset[str]
    licence: str
    versions: tuple[Version, ...]
    variants: tuple[Variant, ...]
    conflicts: tuple[Conflict, ...]
    provides: tuple[str, ...]
    patches: tuple[tuple[str, str], ...]
    needs: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> str:
        """Where Spack finds it: ``mvapich_plus``."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """As a spec writes it: ``mvapich-plus``."""
        return self.folder.removeprefix("_").replace("_", "-")

    @cached_property
    def comments(self) -> str:
        """All comments of the file, for the checks that look for a reason."""
        tokens = tokenize.generate_tokens(io.StringIO(self.path.read_text("utf-8")).readline)
        return "\n".join(one.string.lstrip("# ") for one in tokens if one.type == tokenize.COMMENT)

    def variant_values(self) -> dict[str, set[str]]:
        """Variant → all values over all of its declarations; an empty set takes any word."""
        found: dict[str, set[str]] = {}
        for helper in self.helpers:
            for name, values in GIVEN.get(helper, {}).items():
                found.setdefault(name, set()).update(values)
        for variant in self.variants:
            found.setdefault(variant.name, set()).update(variant.values)
        return found

    def url_for(self, version: Version) -> str:
        """Where the source of ``version`` is; as Spack does it, from the recipe's ``url``.

        "" when the recipe has none, or when the url holds nothing that looks like a version.
        """
        if version.url:
            return version.url
        known = [one.name for one in self.versions if one.name in self.url]
        shown = _VERSION.search(self.url.rpartition("/")[2])
        old = max(known, key=len) if known else shown and shown[0]
        return self.url.replace(old, version.name) if old else ""


def class_for(folder: str) -> str:
    """The class name that Spack expects in a folder: ``mvapich_plus`` → ``MvapichPlus``."""
    name = "".join(part.capitalize() for part in folder.replace("-", "_").split("_"))
    return f"_{name}" if name[:1].isdigit() else name
