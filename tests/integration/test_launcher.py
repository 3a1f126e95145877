"""The launcher's ordinary life: first use, every use after it, a checkout that moves or changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import TOP, Checkout, make_wheel


def said(result: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_first_use_sets_up_and_passes_everything_on(checkout: Checkout) -> None:
    first = checkout.run("explain", "a b", "--json", "--", "*")
    assert said(first)["arguments"] == ["explain", "a b", "--json", "--", "*"]
    assert f"making {checkout.venv}" in first.stderr

    second = checkout.run("explain")
    assert said(second)["arguments"] == ["explain"]
    assert second.stderr == ""


def test_the_packages_for_images_are_not_installed_before_they_are_needed(
    checkout: Checkout,
) -> None:
    pins = checkout.top / "requirements" / "images.txt"
    shutil.copy(checkout.top / "requirements" / "runtime.txt", pins)
    said(checkout.run("image", "--help"))
    assert not (checkout.venv / ".ready-runtime").exists(), "help needs no more than is there"
    said(checkout.run("image", "list"))
    assert checkout.run("image", "list").stderr == ""
    assert not (checkout.venv / ".ready-images").exists()
    # once they are there, pins that changed are followed
    (checkout.venv / ".ready-images").write_text("older")
    assert "an image needs" in checkout.run("image", "list").stderr
    assert checkout.run("image", "list").stderr == ""


def test_only_commands_that_build_or_check_wait_for_all_packages(checkout: Checkout) -> None:
    for words in (["explain", "alps"], ["--site", "install", "check", "a"], ["x", "--help"]):
        said(checkout.run(*words))
    assert not (checkout.venv / ".ready-runtime").exists()
    # of this machine that MPI is chosen whose source can be had, and EasyBuild reads where it is
    first = checkout.run("--site", "here", "explain", "local/node")
    assert "mvstack explain needs more Python packages" in first.stderr
    assert checkout.run("up", "local").stderr == ""


@pytest.mark.parametrize(
    ("line", "wait"),
    [
        ("explain local", True),
        ("explain --json local/node", True),
        ("explain localhost", False),
        ("lock local", True),
        ("--site here check", True),
        ("check expanse local", False),
        ("sources add x.tar.gz", True),
        ("sources", True),
        ("sources list", False),
    ],
)
def test_commands_for_which_easybuild_reads_recipes_wait_for_it(line: str, wait: bool) -> None:
    """Of a fresh clone they were tracebacks: there was no EasyBuild yet."""
    ask = f'top={TOP}; source "$top/requirements/setup.sh"; needs_runtime {line}'
    assert subprocess.run(["bash", "-c", ask], check=False).returncode == (not wait)


def test_ready_needs_no_network_and_no_index(ready: Checkout) -> None:
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    result = ready.run(prefix=alone, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_NO_INDEX="")
    said(result)
    assert result.stderr == ""


def test_from_another_directory_through_a_symlink(ready: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    link = elsewhere / "mv"
    link.symlink_to(ready.top / "mvstack")
    result = subprocess.run(
        ["./mv", "x"], cwd=elsewhere, env=ready.environment(), capture_output=True, text=True
    )
    assert said(result)["cwd"] == str(elsewhere)
    assert not list(elsewhere.glob(".venv"))


def test_nothing_around_it_shadows_its_modules(checkout: Checkout, tmp_path: Path) -> None:
    for folder in (tmp_path / "here", tmp_path / "site"):
        (folder / "mvstack").mkdir(parents=True)
        for name in ("mvstack/__init__.py", "mvstack/__main__.py", "tinydep.py"):
            (folder / name).write_text("raise SystemExit('shadowed')")
    result = checkout.run(cwd=tmp_path / "here", PYTHONPATH=str(tmp_path / "site"))
    assert said(result)["mvstack"] == str(checkout.top / "src" / "mvstack")


def test_settings_of_pip_that_would_install_elsewhere_are_not_followed(
    checkout: Checkout, tmp_path: Path
) -> None:
    result = checkout.run(PIP_USER="1", PIP_TARGET=str(tmp_path / "target"))
    assert str(said(result)["dep"]).startswith(str(checkout.venv))
    assert not (tmp_path / "target").exists()


def test_a_changed_pin_is_installed(checkout: Checkout) -> None:
    said(checkout.run())
    checkout.pin("2.0")
    again = checkout.run().stderr
    assert "installing 1 packages" in again and "making" not in again
    assert checkout.run().stderr == ""
    installed = subprocess.check_output(
        [checkout.venv / "bin/python", "-m", "pip", "list"], text=True
    )
    assert "tinydep 2.0" in " ".join(installed.split())


@pytest.mark.parametrize("how", ["moved", "copied"])
def test_a_checkout_in_a_new_place(checkout: Checkout, tmp_path: Path, how: str) -> None:
    said(checkout.run())
    old, new = checkout.top, tmp_path / "new"
    if how == "moved":
        old.rename(new)
    else:
        shutil.copytree(old, new, symlinks=True)
    shutil.rmtree(checkout.wheels)  # nothing may be installed for it
    checkout.top = new
    result = checkout.run()
    assert said(result)["prefix"] == str(new / ".venv")
    assert "moved" in result.stderr
    assert (new / ".venv/bin/tinydep").read_text().startswith(f"#!{new}/.venv/bin/")
    assert checkout.run().stderr == ""


def test_a_checkout_moved_to_a_path_that_no_script_can_name(
    checkout: Checkout, tmp_path: Path
) -> None:
    said(checkout.run())
    new = tmp_path / "with a space"
    checkout.top.rename(new)
    checkout.top = new
    assert "making" in checkout.run().stderr
    ran = subprocess.run([new / ".venv/bin/tinydep"], capture_output=True, text=True)
    assert ran.stderr.strip() == "1.0"


def test_an_interpreter_that_went_away(checkout: Checkout) -> None:
    said(checkout.run())
    python = checkout.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    result = checkout.run()
    said(result)
    assert "making" in result.stderr


@pytest.mark.parametrize("damage", ["cut", "changed", "no file"])
def test_a_damaged_pip_of_pythons_own_is_not_half_unpacked(tmp_path: Path, damage: str) -> None:
    digest = make_wheel(tmp_path, "pip", "2.0")
    (tmp_path / "pip.txt").write_text(f"pip==2.0 --hash=sha256:{digest}\n")
    own = tmp_path / "own" / "pip-1.0-py3-none-any.whl"
    own.parent.mkdir()
    make_wheel(own.parent, "pip", "1.0")
    data = own.read_bytes()
    if damage == "no file":
        own.unlink()
    else:
        own.write_bytes(data[:200] if damage == "cut" else data.replace(b"'1.0'", b"'1.5'"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    unpack = [TOP / "requirements" / "fetch_pip.py", tmp_path / "pip.txt", own]
    python, env = tmp_path / "venv" / "bin" / "python", {"PIP_FIND_LINKS": str(tmp_path)}
    result = subprocess.run([python, "-I", *unpack], env=env, capture_output=True, text=True)
    assert result.returncode == 0 and f"{own} is damaged" in result.stderr
    assert result.stderr.count("\n") == 1
    there = subprocess.check_output([python, "-c", "import pip; print(pip.version)"], text=True)
    assert there == "2.0\n"
    assert len(list(tmp_path.glob("venv/lib/*/site-packages/pip-*"))) == 1


# A Python of a distribution: it looks for pip in a folder, in which there is none.
OF_A_DISTRIBUTION = """#!{python}
import os, sys, sysconfig
if "-c" not in sys.argv:
    os.execv("{python}", ["{python}", *sys.argv[1:]])
sysconfig.get_config_vars()["WHEEL_PKG_DIR"] = "{empty}"
exec(sys.argv[sys.argv.index("-c") + 1])
"""


@pytest.mark.skipif(
    not list(Path(os.__file__).parent.glob("ensurepip/_bundled/pip-*.whl")),
    reason="this Python's ensurepip has no pip of its own",
)
def test_a_python_whose_folder_of_wheels_is_empty_takes_ensurepips(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(OF_A_DISTRIBUTION.format(python=sys._base_executable, empty=tmp_path))
    python.chmod(0o755)
    shutil.copytree(TOP / "requirements", tmp_path / "requirements")
    make = f'top={tmp_path}; source "$top/requirements/setup.sh"; make_venv {python}'
    env = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_FIND_LINKS": ""}
    result = subprocess.run(["bash", "-c", make], env=env, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert list(tmp_path.glob(".venv/lib/*/site-packages/pip-*"))


def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    both = [checkout.start(name) for name in ("one", "two")]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [json.loads(out)["arguments"] for out, _ in outputs] == [["one"], ["two"]]
    errors = "".join(err for _, err in outputs)
    assert errors.count("making") == 1
    assert "another set-up" in errors
