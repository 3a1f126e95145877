"""Inside Spack (`spack -e DIR python concretize.py`): solve the environment, write its lock.

`spack concretize` would also make the environment's view, in the site's folders; this writes the
lock and nothing else.
"""

from typing import Any

import spack.archspec
import spack.compilers.libraries
import spack.config
import spack.environment
import spack.platforms
import spack.repo
import spack.solver.asp
import spack.spec
import spack.util.libc
from spack.operating_systems._operating_system import OperatingSystem
from spack.vendor.archspec import cpu


def as_if_there(packages: dict[str, Any]) -> None:
    """Have Spack think that it is on a node that the environment is for.

    Left to itself it calls all packages ones of this machine's operating system, knows no targets
    of another family, whatever `host_compatible` says, takes this machine's C library, and leaves
    wrapper, runtime and C library out of what a compiler compiles that is not installed yet.
    """
    asked = dict(one.split("=", 1) for one in packages["all"]["require"])
    platform, family = spack.platforms.host(), cpu.TARGETS[asked["target"]].family
    if (asked["os"], family) == (platform.default_os, cpu.host().family):
        libc = spack.util.libc.libc_from_current_python_process()
    elif known := packages.get("glibc", {}).get("externals"):
        libc = spack.spec.Spec(known[0]["spec"], external_path=known[0]["prefix"])
        cpu.host = lambda: family
        spack.archspec.HOST_TARGET_FAMILY = family
        platform.default, platform.default_os = family.name, asked["os"]
        platform.operating_sys = {asked["os"]: OperatingSystem(asked["os"], "")}
    else:
        raise SystemExit(
            f"==> Error: compiler and C library of {asked['os']} are not known: add them to "
            "operating_systems in environments/policy/spack.yaml, or solve on such a node"
        )
    spack.compilers.libraries.CompilerPropertyDetector.default_libc = lambda compiler: libc
    spack.solver.asp.c_compiler_runs = lambda compiler: True


def no_deprecated(specs: list[spack.spec.Spec]) -> None:
    """Refuse at once the versions that the solver says no to after minutes."""
    for node in (node for spec in specs for node in spec.traverse()):
        virtual = spack.repo.PATH.is_virtual(node.name)
        known = {} if virtual else spack.repo.PATH.get_pkg_class(node.fullname).versions
        if known.get(node.versions.concrete, {}).get("deprecated"):
            good = [str(one) for one, about in known.items() if not about.get("deprecated")]
            raise SystemExit(
                f"==> Error: the recipe of {node.name} calls version {node.version} deprecated. "
                f"Ask for one of these in the system's or the release's file: {', '.join(good)}"
            )


def main() -> None:
    """Solve anew what stands in the active environment."""
    environment = spack.environment.active_environment()
    as_if_there(spack.config.get("packages"))
    if not spack.config.get("config:deprecated"):
        no_deprecated(environment.user_specs)
    # what a person sees while nothing else is said
    print(f"==> Solving for {len(environment.user_specs)} roots", flush=True)
    with environment.write_transaction():
        environment.concretize(force=True)
        environment.write(regenerate=False)


if __name__ == "__main__":
    main()
