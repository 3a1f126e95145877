"""The kit that a test's build provisions with: the repository's own, with a release of a few files.

Real are provision/run and its steps, the drop-in files as they are rendered, and the
generalising. Two things are not. Of the packages only those are asked for that a base of these
worlds has (PACKAGES). And the test in the image is a small one: a release with an MPI in it is
built and run where an image is whole, in the QEMU flow.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

from mvstack.image.kit import make_kit
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import ImagePlan, make_image
from mvstack.image.policy import image_policy
from mvstack.image.render import image_files
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.plan.make import make_plan, partitions_of
from mvstack.plan.types import Plan

SYSTEM = "qemu-debian12"  # Debian 12, as the base of these worlds
PACKAGES = ("ca-certificates", "curl", "openssh-server", "procps", "sudo", "systemd", "zstd")
SMOKE = """#!/bin/bash
set -eu
source "$(dirname "$0")/../image/provision.env"
test -s "$TREE/modules/Core/mvapich-stack.lua"
grep -q 'memlock.*unlimited' /etc/security/limits.d/90-mvapich-stack.conf
echo 'tests: 2 passed'
"""
FAILING_STEP = {"99-fails.sh": "exit 3\n"}
FAILING_TEST = {"smoke": "#!/bin/bash\necho 'FAILED: 2 of 9 tests in the image' >&2\nexit 1\n"}
WAITING = {"99-waits.sh": "touch /run/provisioning\nsleep 600\n"}


def make(folder: Path, cloud: str, files: dict[str, str]) -> tuple[Path, str]:
    """A kit for ``cloud`` in ``folder``, and its SHA-256.

    ``files`` are put into provision/, over those of the same name; one that is called like a step
    (``99-name.sh``) is run after the other steps.
    """
    provision = folder / "images"
    for name in ("provision", "files"):
        shutil.copytree(TEMPLATES / name, provision / name)
    for name, text in {"smoke": SMOKE, **files}.items():
        path = provision / "provision" / name
        path.write_text(text)
        path.chmod(0o755)
    plan, image = _image(cloud, [name for name in files if name[0].isdigit()])
    archive = folder / "release.tar.zst"
    _release(folder / "release", archive)
    kit = folder / "kit.tar"
    digest = make_kit(kit, image_files(plan, image), {"name": "test"}, archive, "", provision)
    return kit, digest


def load_image(name: str, partition: str) -> ImagePlan:
    """The plan of a system's image."""
    system = load_system(name)
    plan = make_plan(system, partition, load_release(), load_policy())
    return make_image(system, plan, image_policy())


def _image(cloud: str, steps: list[str]) -> tuple[Plan, ImagePlan]:
    system = load_system(SYSTEM)
    plan = make_plan(system, partitions_of(system, None)[0], load_release(), load_policy())
    image = make_image(system, plan, image_policy())
    more = [{"script": name, "why": "the test's", "source": "the test"} for name in steps]
    packages = [name for name in image.packages if name in PACKAGES]
    return plan, dataclasses.replace(
        image, cloud=cloud, packages=packages, steps=[*image.steps, *more]
    )


def _release(tree: Path, archive: Path) -> None:
    texts = {
        "init/bash": "export MODULEPATH=$MVAPICH_STACK_TREE/modules/Core\n",
        "modules/Core/mvapich-stack.lua": "help([[A release of a few files.]])\n",
        "records/nodes.json": "{}\n",
    }
    for name, text in texts.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["tar", "--zstd", "-C", tree, "-cf", archive, "."], check=True)
