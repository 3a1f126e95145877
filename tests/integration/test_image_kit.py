"""The kit: all that an instance needs, the same bytes for the same inputs."""

from __future__ import annotations

import tarfile
from pathlib import Path

from mvstack.image import kit
from mvstack.support.files import sha256_of


def tree(folder: Path) -> Path:
    (folder / "software" / "A" / "easybuild").mkdir(parents=True)
    (folder / "software" / "A" / "bin").write_text("a")
    (folder / "software" / "A" / "bin").chmod(0o755)
    (folder / "software" / "A" / "easybuild" / "A.log").write_text("today")
    (folder / "logs").mkdir()
    (folder / "logs" / "x").write_text("today")
    (folder / "modules").symlink_to("software")
    return folder


def test_the_same_tree_gives_the_same_archive_wherever_it_stands(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        place = tree(tmp_path / name)
        archive = tmp_path / f"{name}.tar.zst"
        digests.add(kit.release_archive(place, archive, lambda _: None, tmp_path / "log"))
    assert len(digests) == 1


def test_the_kit_holds_all_and_says_by_whom(tmp_path: Path) -> None:
    archive = tmp_path / "release.tar.zst"
    kit.release_archive(tree(tmp_path / "tree"), archive, lambda _: None, tmp_path / "log")
    made = {
        kit.make_kit(
            tmp_path / f"{n}.tar", {"image/provision.env": "A=1\n"}, {"v": 1}, archive, "p=1"
        )
        for n in range(2)
    }
    assert len(made) == 1
    with tarfile.open(tmp_path / "0.tar") as tar:
        names = tar.getnames()
        assert {"provision/run", "provision/lib.sh", "packages.txt", "release.sha256"} <= set(names)
        assert tar.getmember("provision/run").mode == 0o755
        assert all((member.uid, member.mtime) == (0, 0) for member in tar.getmembers())
        member = tar.extractfile("release.sha256")
        assert member is not None and member.read().split()[0].decode() == sha256_of(archive)
