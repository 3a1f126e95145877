"""`mvstack` as it is, but building for an emulated cloud with whatever Packer is here."""

from __future__ import annotations

from pathlib import Path

import old_packer

from mvstack.cli.main import main
from mvstack.image import packer, vm

vm.PATIENCE = 1800  # an emulated machine on one that has other work to do
prepare = packer.prepare


def adapted(folder: Path) -> None:
    prepare(folder)
    old_packer.adapt(folder)


packer.prepare = adapted
packer.CURRENT = (1, 6, 6)
main()
