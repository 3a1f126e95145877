"""What must come from the distribution: named with its reason and the line that installs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from mvstack.discover import look
from mvstack.install import prerequisites
from mvstack.install.prerequisites import (
    install_missing,
    lacking,
    refuse,
)
from mvstack.model import prerequisites as policy
from mvstack.model.prerequisites import Needed, of_the_distribution
from mvstack.plan.easyconfigs import FOLDER
from mvstack.support.errors import Missing
from mvstack.support.home import DATA, home

# Files stand for packages: there when a file of that name is, installed by making one.
FILE = """\
families:
  files:
    like: [filesos]
    update: touch {folder}/updated
    install: {install}
    present: cat {folder}/{{package}}
    packages:
      - {{package: gcc, why: C compiler}}
      - {{package: lmod, why: the module command}}
      - {{package: "libx-dev+1", why: headers of x}}
      - {{package: cmake, why: builds more, profile: full, easybuild: [CMake]}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder whose files are the packages."""
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path))
    write(tmp_path, packages, f"cp -t {packages} --")
    monkeypatch.chdir(tmp_path)
    for name in ("gcc", "lmod", "libx-dev+1"):
        (tmp_path / name).write_text("installed")
    return packages


def write(top: Path, packages: Path, install: str) -> None:
    (top / "policy").mkdir(exist_ok=True)
    text = FILE.format(folder=packages, install=install)
    (top / "policy" / "prerequisites.yaml").write_text(text)


def test_what_is_missing_is_named_with_its_reason_and_the_line(folder: Path) -> None:
    (folder / "gcc").write_text("installed")
    missing = lacking("filesos12")
    assert missing is not None
    assert [item.package for item in missing.needed] == ["lmod", "libx-dev+1"]
    error = refuse(missing)
    text = str(error)
    assert error.exit_code == 7 and "2 packages" in text and "Nothing was installed" in text
    assert "lmod (the module command)" in text and "--yes" in text
    assert f"touch {folder}/updated && cp -t {folder} -- lmod libx-dev+1" in text


def test_removed_and_half_known_packages_are_missing(folder: Path) -> None:
    (folder / "gcc").write_text("not-installed")
    (folder / "lmod").write_text("")
    (folder / "libx-dev+1").write_text("installed")
    missing = lacking("filesos12")
    assert missing is not None and [item.package for item in missing.needed] == ["gcc", "lmod"]


def test_with_yes_what_is_missing_is_installed(folder: Path, tmp_path: Path) -> None:
    missing = lacking("filesos12")
    assert missing is not None
    install_missing(missing, tmp_path / "logs" / "a.log")
    assert lacking("filesos12") is None
    assert (folder / "updated").is_file() and (tmp_path / "logs" / "a.log").is_file()


def test_an_installation_that_fails_shows_the_end_of_its_log(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, folder, f"cp -t {folder}/nowhere --")
    missing = lacking("filesos12")
    assert missing is not None
    with pytest.raises(Missing, match="nowhere") as caught:
        install_missing(missing, tmp_path / "a.log")
    problem = caught.value.problems[0]
    assert "failed with status 1" in problem.message and "lmod" in problem.message
    assert problem.where == str(tmp_path / "a.log") and problem.todo


def test_a_tool_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, folder, "no-such-installer")
    missing = lacking("filesos12")
    assert missing is not None
    with pytest.raises(Missing, match="no-such-installer: No such file"):
        install_missing(missing, tmp_path / "a.log")


def test_another_distribution_is_told_what_it_needs_in_words(folder: Path) -> None:
    with pytest.raises(Missing) as caught:
        lacking("plan9")
    problem = caught.value.problems[0]
    assert "plan9" in problem.message and "--no-prerequisites" in problem.todo
    assert problem.allowed == "filesos"


def test_a_wrong_file_is_told_with_its_line(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy" / "prerequisites.yaml"
    file.write_text(file.read_text().replace("why: C compiler", "wy: C compiler"))
    with pytest.raises(Exception, match=r"prerequisites\.yaml:8.*did you mean why"):
        lacking("filesos12")


def test_a_package_that_debian_does_not_have_is_missing_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not (look().os or "").startswith(("debian", "ubuntu")):
        pytest.skip("dpkg is asked, and this is not a Debian or Ubuntu")
    file = home().file("policy", "prerequisites.yaml")
    families = policy.validated(policy._File, policy.read_yaml(file)).families
    debian = families["debian"]
    dpkg, none = (Needed(package=name, why="") for name in ("dpkg", "mvstack-no-such-package"))
    assert prerequisites._present(debian, dpkg)
    assert not prerequisites._present(debian, none)
    by_command = none.model_copy(update={"command": "bash"})
    for uid, there in ((0, False), (1000, True)):  # root installs the package
        monkeypatch.setattr("os.geteuid", lambda uid=uid: uid)
        assert prerequisites._present(debian, by_command) == there
    assert debian.install.startswith("apt-get install -y")


def test_a_larger_profile_needs_more(folder: Path) -> None:
    def names(profile: str) -> list[str]:
        missing = lacking("filesos12", profile)
        return [one.package for one in missing.needed] if missing else []

    assert names("") == names("default") == names("small") == ["gcc", "lmod", "libx-dev+1"]
    assert names("full") == ["gcc", "lmod", "libx-dev+1", "cmake"]


def test_what_the_distribution_has_easybuild_need_not_build(folder: Path) -> None:
    assert of_the_distribution("filesos12", "full") == ["CMake"]
    assert of_the_distribution("filesos12", "default") == []
    assert of_the_distribution("an unknown one", "full") == []


def test_what_our_patches_tell_a_person_to_install_is_installed_for_them() -> None:
    """NEURON's once named a package that only one machine had."""
    said = {
        name
        for patch in FOLDER.rglob("*.patch")
        for name in re.findall(r"install ([\w.+-]+-dev)\b", patch.read_text(errors="replace"))
    }
    policy = yaml.safe_load((DATA / "environments" / "policy" / "prerequisites.yaml").read_text())
    assert "librandom123-dev" in said
    assert said <= {item["package"] for item in policy["families"]["debian"]["packages"]}
