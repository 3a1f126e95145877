"""``mvstack-ci.yaml``: what a site's pipelines need to know beside its system files."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import InvalidInput, relative

TREE_LENGTH = 96
"""Characters in the path of a tree in which jobs build (mvstack.ci.steps.padded)."""

# what stands in shell lines of pipelines: nothing in it means anything to a shell
Folder = Annotated[
    str,
    StringConstraints(pattern=r"^/[A-Za-z0-9._/+@%=-]*$"),
    AfterValidator(lambda path: path.rstrip("/")),
]
Tag = Annotated[str, StringConstraints(pattern=r"^[^\s,]{1,255}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/+@%=:,~-]+$")]
# the digest is what is fetched; the name before it is for people
Image = Annotated[str, StringConstraints(pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]


class Runners(Strict):
    """Tags of the runners that jobs go to; a runner must have all of them.

    ``trusted`` are further ones, for every job of a pipeline of a protected branch: what such a
    pipeline builds is signed, so it must not run where merge requests could have left something.
    """

    build: list[Tag] = EMPTY_LIST
    cluster: list[Tag] = EMPTY_LIST
    protected: list[Tag] = EMPTY_LIST
    trusted: list[Tag] = Field(default_factory=lambda: ["protected"])


class Variables(Strict):
    """Variables of jobs by the runner that they go to, e.g. SCHEDULER_PARAMETERS of Jacamar CI."""

    build: dict[Variable, str] = Field(default_factory=dict)
    cluster: dict[Variable, str] = Field(default_factory=dict)
    protected: dict[Variable, str] = Field(default_factory=dict)


class Images(Strict):
    """How a system's images are made and published.

    ``folder`` is where the runner that builds them keeps them. ``vulnerabilities`` is a folder with
    OSV's database, or ``unknown`` to publish without one. ``to`` is the folder that images for QEMU
    are published to. Of a cloud, ``settings`` is a file of the project with Packer's variables;
    ``regions`` and ``share`` are those of `mvstack image publish`. With ``budget``, the most that
    it may cost, the pipeline starts the machine that tests the image; without, you do. With
    ``audience`` jobs log in there by a token of GitLab's for it (OIDC), and no secret is kept.
    """

    folder: Folder
    vulnerabilities: Folder | Literal["unknown"]
    to: Folder | None = None
    settings: Word | None = None
    regions: list[Word] = EMPTY_LIST
    share: list[Word] = EMPTY_LIST
    budget: Annotated[float, Field(gt=0)] | None = None
    audience: Word | None = None


class Site(Strict):
    """One system that this project has runners for.

    ``staging`` is a folder that runners and the cluster's nodes both see: what was built is put
    there, run, and removed. ``compilers`` is one that all runners and users see by the same path,
    for compilers that Spack builds. ``image`` is what jobs run in on runners of containers; without
    one the project's. Without ``images`` no pipeline makes any. ``root`` is the shared tree that
    users load modules from; without one nothing is deployed.
    """

    system: Word
    partitions: list[Word] = EMPTY_LIST
    runners: Runners = Field(default_factory=Runners)
    variables: Variables = Field(default_factory=Variables)
    staging: Folder
    root: Folder | None = None
    compilers: Folder | None = None
    image: Image | None = None
    images: Images | None = None


class Settings(Strict):
    """What ``mvstack ci generate`` makes pipelines with.

    ``tree_length`` is how many characters the path of a tree has in which jobs build: packages can
    be moved to trees whose path is no longer (mvstack.ci.steps.padded). ``locks`` is a folder of
    the project with lock files as `mvstack lock --to` writes them; with ``solve`` the job that
    plans solves for what has none. With ``approve: false`` nobody is asked before a deployment.
    """

    systems: Annotated[list[Site], Field(min_length=1)]
    caches: list[Word] = EMPTY_LIST
    push: Word | None = None
    trust: list[Word] = EMPTY_LIST
    mirrors: list[Word] = EMPTY_LIST
    locks: Word | None = None
    solve: bool = False
    image: Image | None = None
    tree_length: Annotated[int, Field(ge=40, le=TREE_LENGTH)] = TREE_LENGTH
    approve: bool = True
    variables: dict[Variable, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names = [(one.system, part) for one in self.systems for part in one.partitions or [""]]
        twice = sorted({f"{s}/{p}".rstrip("/") for s, p in names if names.count((s, p)) > 1})
        if twice:
            raise ValueError(f"systems: {', '.join(twice)} stands there twice")
        if any(one.root for one in self.systems) and not self.push:
            raise ValueError(
                "push: is missing: a root is deployed to from signed packages in a binary cache"
            )
        return self


def load_settings(path: Path) -> Settings:
    """The settings file at ``path``. Raises InvalidInput with every error and its line."""
    if not path.is_file():
        raise InvalidInput(
            "there is no such file",
            relative(path),
            todo="write it; docs/ci.md shows the shortest that works",
        )
    return validated(Settings, read_yaml(path))
