"""The words that hand-written files may use: most are the names of the policy's rows.

A new fabric, GPU, launcher or product is a row under environments/policy/; nothing here names it.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

ROWS = {
    "fabric": ("fabrics", "fabrics"),
    "gpu": ("gpus", "gpus"),
    "launcher": ("launchers", "programs"),
    "pmi": ("launchers", "pmis"),
    "scheduler": ("schedulers", "schedulers"),
    "product": ("products", "products"),
    "external": ("externals", "externals"),
    "provider": ("fabrics", "providers"),
}
"""Kind of word → the policy's file and the key whose rows are named by it."""


def words(kind: str) -> tuple[str, ...]:
    """The words of ``kind``, in the order of the policy's rows."""
    return _words(kind, tuple(home().folders("policy")))


@cache
def _words(kind: str, folders: tuple[Path, ...]) -> tuple[str, ...]:
    file, key = ROWS[kind]
    rows = [_rows(folder / f"{file}.yaml", key) for folder in folders]
    if kind == "provider":  # what a fabric asks of libfabric is one too
        rows += [dict.fromkeys(_asked(folder), "") for folder in folders]
    return tuple(dict.fromkeys(str(word) for found in rows for word in found))


def _asked(folder: Path) -> list[str]:
    fabrics = _rows(folder / "fabrics.yaml", "fabrics").values()
    beneath = [row.get("libfabric") for row in fabrics if isinstance(row, dict)]
    asked = [one.get("fabrics") for one in beneath if isinstance(one, dict)]
    return [str(word) for words in asked if isinstance(words, list) for word in words]


@cache
def _rows(path: Path, key: str) -> dict[str, Any]:
    data = read_yaml(path).data if path.is_file() else None
    rows = data.get(key) if isinstance(data, dict) else None
    return rows if isinstance(rows, dict) else {}


@dataclass(frozen=True)
class Word:
    """Marks text that must be a word of ``kind``; pydantic validates and describes it so."""

    kind: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Text that is one of the words."""
        return core_schema.no_info_after_validator_function(
            self._known, core_schema.str_schema(strict=True)
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The words, for editors that complete them."""
        return {"type": "string", "enum": list(words(self.kind))}

    def _known(self, value: str) -> str:
        allowed = words(self.kind)
        if not (parts_of(value) if self.kind == "provider" else {value}) <= set(allowed):
            file = ROWS[self.kind][0]
            raise PydanticCustomError(
                "unknown_word",
                "unknown {kind}",
                {"kind": self.kind, "allowed": list(allowed), "file": f"{file}.yaml"},
            )
        return value


def parts_of(provider: str) -> set[str]:
    """A provider may stand on others, ``tcp;ofi_rxm``, and bear libfabric's prefix."""
    return {part.removeprefix("ofi_") for part in provider.split(";")}


Fabric = Annotated[str, Word("fabric")]
Gpu = Annotated[str, Word("gpu")]
Launcher = Annotated[str, Word("launcher")]
Pmi = Annotated[str, Word("pmi")]
Scheduler = Annotated[str, Word("scheduler")]
Product = Annotated[str, Word("product")]
ExternalName = Annotated[str, Word("external")]
Provider = Annotated[str, Word("provider")]

GpuKind = Literal["none", "nvidia", "amd", "intel"]
Builder = Literal["easybuild", "spack"]
Origin = Literal["system", "easybuild", "spack", "external"]
Profile = Literal["default", "small", "full"]
Provision = Literal["external", "embedded", "none"]

PROFILES: tuple[str, ...] = get_args(Profile)
"""How much of a release is installed: each profile holds what those before it hold."""
