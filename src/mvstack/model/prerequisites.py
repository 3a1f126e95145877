"""The distribution's packages that builds need: environments/policy/prerequisites.yaml."""

from typing import Self

from pydantic import Field

from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.vocabulary import PROFILES, Profile
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import Missing
from mvstack.support.home import home


class Needed(Strict):
    """One package of the distribution, and what it is needed for.

    ``easybuild`` names what EasyBuild need not build where this is installed. For who is not root
    ``command`` on PATH is as good as the package, and ``without`` says what is done without it; ""
    where nothing can be. What is ``planned`` can be done without only where the plan is made so.
    """

    package: str
    why: str
    profile: Profile = "default"
    easybuild: list[str] = EMPTY_LIST
    command: str = ""
    without: str = ""
    planned: bool = False


class Family(Strict):
    """The packages of one family of distributions and the command that installs them.

    They may be those of another (``named_as``) by the ``names`` that differ; "" has none.
    """

    like: list[str]
    update: str
    install: str
    present: str
    packages: list[Needed] = EMPTY_LIST
    named_as: str = Field("", alias="as")
    names: dict[str, str] = Field(default_factory=dict)

    def of(self, profile: str) -> list[Needed]:
        """What ``profile`` of a release needs; "" is the smallest."""
        most = PROFILES.index(profile or "default")
        return [item for item in self.packages if PROFILES.index(item.profile) <= most]

    def named(self, packages: list[Needed]) -> Self:
        """This family with another's ``packages`` by its own names."""
        there = [(item, self.names.get(item.package, item.package)) for item in packages]
        own = [item.model_copy(update={"package": name}) for item, name in there if name]
        return self.model_copy(update={"packages": own})


class _File(Strict):
    families: dict[str, Family]


def families() -> dict[str, Family]:
    """What every family of distributions calls the packages, with the errors of the file."""
    known = validated(_File, read_yaml(home().file("policy", "prerequisites.yaml"))).families
    return {
        name: one.named(known[one.named_as].packages) if one.named_as else one
        for name, one in known.items()
    }


def family_of(os_name: str) -> Family:
    """What a family of distributions calls the packages. Raises Missing where it is not known."""
    known = families()
    for family in known.values():
        if any(os_name.startswith(prefix) for prefix in family.like):
            return family
    raise Missing(
        f"what {os_name} calls the packages that a build needs is not known",
        str(home().file("policy", "prerequisites.yaml")),
        allowed=", ".join(name for family in known.values() for name in family.like),
        todo="install a C, C++ and Fortran compiler, make, Lmod and the headers of libfabric, "
        "UCX and hwloc, then give --no-prerequisites",
    )


def of_the_distribution(os_name: str, profile: str) -> list[str]:
    """What EasyBuild is to take from the distribution where its compiler is the distribution's.

    Empty for a family of distributions that is not known.
    """
    try:
        family = family_of(os_name)
    except Missing:
        return []
    return [name for item in family.of(profile) for name in item.easybuild]
