"""The command line of EasyBuild."""

from pathlib import Path

from mvstack.builders.easybuild.command import matching


def test_only_patterns_that_match_a_file_are_given_to_easybuild(tmp_path: Path) -> None:
    ours, site = tmp_path / "ours", tmp_path / "site"  # the site has easyconfigs alone
    for name in ("easyblocks/mpich.py", "toolchains/gmvapich.py", "toolchains/mpi/mvapich.py"):
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).touch()
    site.mkdir()
    assert matching([ours, site], "easyblocks/*.py") == f"{ours}/easyblocks/*.py"
    both = matching([ours, site], "toolchains/*.py", "toolchains/*/*.py")
    assert both == f"{ours}/toolchains/*.py,{ours}/toolchains/*/*.py"
