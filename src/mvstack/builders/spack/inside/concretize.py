"""Inside Spack (`spack -e DIR python concretize.py`): solve the environment, write its lock.

`spack concretize` would also make the environment's view, in the site's folders; this writes the
lock and nothing else.
"""

from __future__ import annotations

import spack.environment


def main() -> None:
    """Solve anew what stands in the active environment."""
    environment = spack.environment.active_environment()
    # what a person sees while nothing else is said
    print(f"==> Solving for {len(environment.user_specs)} roots", flush=True)
    with environment.write_transaction():
        environment.concretize(force=True)
        environment.write(regenerate=False)


if __name__ == "__main__":
    main()
