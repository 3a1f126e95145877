"""A bare Debian to provision in a chroot: nothing of it outlives its world, and no ssh leads in."""

from __future__ import annotations

from pathlib import Path

from .world import World

_MAKE = r"""
top=$1 base=$2
mount -t tmpfs -o mode=0755 chroot "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay -o "lowerdir=$base,upperdir=$top/upper,workdir=$top/work" chroot "$top/root"
"""
# /proc is mounted for the command alone, so that nobody who walks the root meets it.
_RUN = r"""
root=$1
shift
mount -t proc -o ro proc "$root/proc"
exec chroot "$root" "$@"
"""


class Chroot:
    """An overlay over ``base``, in memory, mounted in ``world`` and gone with it."""

    def __init__(self, world: World, base: Path, top: Path) -> None:
        self.world = world
        self.inside = top / "root"  # as the world sees it
        top.mkdir(parents=True)
        code, said = world.run(["bash", "-euc", _MAKE, "make", top, base])
        if code:
            raise RuntimeError(f"the root could not be mounted: {said}")

    @property
    def root(self) -> Path:
        """Its file tree, as this process sees it."""
        return Path(f"/proc/{self.world.init}/root{self.inside}")

    def run(self, *command: str, **environment: str) -> tuple[int, str]:
        """Run ``command`` in it, without a network: its exit code and what it printed."""
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        path = "/usr/sbin:/usr/bin:/sbin:/bin"
        return self.world.run(
            [*spaces, "bash", "-euc", _RUN, "run", self.inside, *command],
            **{"PATH": path, "LC_ALL": "C", **environment},
        )

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in it, with the folders that it needs."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)
