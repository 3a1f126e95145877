"""What EasyBuild says of a command that failed, and what a person gets to read of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.builders.easybuild import command as eb
from mvstack.support.errors import BuildFailed, Missing

EASYCONFIG = """\
easyblock = 'Bundle'
name = 'Broken'
version = '1.0'
homepage = 'https://example.org/'
description = 'Fails on purpose.'
toolchain = SYSTEM
postinstallcmds = ['seq -f "line %g" 20; echo this is what went wrong; exit 3']
sanity_check_paths = {'files': [], 'dirs': ['.']}
moduleclass = 'tools'
"""


def test_the_end_of_the_commands_own_output_is_in_the_error(tmp_path: Path) -> None:
    # as long as the paths of real trees, which messages must not break into lines
    tree = tmp_path / ("a-long-name-" * 6) / "tree"
    rendered = tree / "rendered"
    (rendered / "easyconfigs").mkdir(parents=True)
    (rendered / "easyconfigs" / "Broken-1.0.eb").write_text(EASYCONFIG)
    easybuild = eb.EasyBuild(tmp_path, tree, rendered, system_compiler=True)
    log = tree / "broken.log"
    try:
        with pytest.raises(BuildFailed) as caught:
            eb.run(easybuild, "Broken-1.0.eb", log, lambda _: None)
    except Missing as error:
        pytest.skip(" ".join(str(error).split()))
    said = str(caught.value)
    assert "this is what went wrong" in said
    assert "line 20" in said and "line 1 |" not in said
    assert str(log) in said
