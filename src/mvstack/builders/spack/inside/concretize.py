"""Inside Spack (`spack -e DIR python concretize.py`): solve the environment, write its lock.

`spack concretize` would also make the environment's view, in the site's folders; this writes the
lock and nothing else.
"""

import spack.config
import spack.environment
import spack.platforms
from spack.vendor.archspec import cpu


def on_its_family(required: list[str]) -> None:
    """Have Spack think that it is on a processor of the family that the environment is for.

    It knows no targets of another family than this machine's, whatever `host_compatible` says.
    """
    for target in (one.removeprefix("target=") for one in required if one.startswith("target=")):
        family = cpu.TARGETS[target].family
        if family != cpu.host().family:
            cpu.host = lambda family=family: family
            spack.platforms.host().default = family.name


def main() -> None:
    """Solve anew what stands in the active environment."""
    environment = spack.environment.active_environment()
    on_its_family(spack.config.get("packages:all:require") or [])
    # what a person sees while nothing else is said
    print(f"==> Solving for {len(environment.user_specs)} roots", flush=True)
    with environment.write_transaction():
        environment.concretize(force=True)
        environment.write(regenerate=False)


if __name__ == "__main__":
    main()
