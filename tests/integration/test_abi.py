"""`mvstack abi` on libraries and programs that the compiler really made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.support.errors import CheckFailed, InvalidInput

MPI = "int MPI_Init(void) { return 0; }\nint MPI_Send(void) { return 1; }\nint MPI_FLAG[2];\n"


def library(folder: Path, text: str, soname: str) -> Path:
    """A prefix with a libmpi of that soname."""
    (folder / "lib").mkdir(parents=True)
    source = folder / "mpi.c"
    source.write_text(text)
    out = folder / "lib" / "libmpi.so"
    made = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", str(source), "-o", str(out)]
    subprocess.run(made, check=True)
    return folder


def program(folder: Path, calls: str, prefix: Path) -> Path:
    """A program that calls ``calls`` of the libmpi in ``prefix``."""
    source = folder / "main.c"
    source.write_text(f"int {calls}(void);\nint main(void) {{ return {calls}(); }}\n")
    out = folder / "main"
    subprocess.run(["gcc", str(source), f"-L{prefix}/lib", "-lmpi", "-o", str(out)], check=True)
    return out


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return library(tmp_path / "old", MPI, "libmpi.so.12")


def test_the_same_names_and_soname_need_no_rebuild(old: Path, tmp_path: Path) -> None:
    new = library(tmp_path / "new", MPI + "int MPI_More(void) { return 0; }\n", "libmpi.so.12")
    result = CliRunner().invoke(app, ["abi", str(old), str(new)])
    assert result.exit_code == 0, result.output
    assert "3 names" in result.output and "no rebuild" in result.output


def test_another_soname_is_refused(old: Path, tmp_path: Path) -> None:
    new = library(tmp_path / "new", MPI, "libmpi.so.0")
    result = CliRunner().invoke(app, ["abi", str(old), str(new)])
    assert isinstance(result.exception, CheckFailed)
    assert "libmpi.so.12 became libmpi.so.0" in str(result.exception)


def test_only_what_the_program_calls_must_be_there(old: Path, tmp_path: Path) -> None:
    new = library(tmp_path / "new", "int MPI_Init(void) { return 0; }\n", "libmpi.so.12")
    calls_init = program(tmp_path, "MPI_Init", old)
    assert CliRunner().invoke(app, ["abi", str(old), str(new), str(calls_init)]).exit_code == 0
    calls_send = program(tmp_path, "MPI_Send", old)
    result = CliRunner().invoke(app, ["abi", "--json", str(old), str(new), str(calls_send)])
    assert result.exit_code == 1
    said = json.loads(result.output)
    assert not said["compatible"] and "MPI_Send" in said["differences"][0]["new"]


def test_an_object_that_grew_is_refused(old: Path, tmp_path: Path) -> None:
    new = library(tmp_path / "new", MPI.replace("FLAG[2]", "FLAG[4]"), "libmpi.so.12")
    result = CliRunner().invoke(app, ["abi", str(old), str(new)])
    assert "8 bytes" in str(result.exception) and "16 bytes" in str(result.exception)


def test_a_program_of_another_library_is_not_judged(old: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["abi", str(old), str(old), "/bin/true"])
    assert isinstance(result.exception, InvalidInput)
    assert "libmpi.so.12" in str(result.exception)


def binding(prefix: Path, soname: str) -> Path:
    """The Fortran binding's library beside a libmpi."""
    source, out = prefix / "fort.c", prefix / "lib" / "libmpifort.so"
    source.write_text("int mpi_init_(void) { return 0; }\n")
    made = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", str(source), "-o", str(out)]
    subprocess.run(made, check=True)
    return prefix


def test_a_program_may_name_the_fortran_binding_alone(old: Path, tmp_path: Path) -> None:
    """So does one in Fortran that was linked with --as-needed."""
    binding(old, "libmpifort.so.12")
    source, out = tmp_path / "main.c", tmp_path / "main"
    source.write_text("int mpi_init_(void);\nint main(void) { return mpi_init_(); }\n")
    subprocess.run(["gcc", str(source), f"-L{old}/lib", "-lmpifort", "-o", str(out)], check=True)
    same = binding(library(tmp_path / "same", MPI, "libmpi.so.12"), "libmpifort.so.12")
    result = CliRunner().invoke(app, ["abi", str(old), str(same), str(out)])
    assert result.exit_code == 0, result.output
    other = binding(library(tmp_path / "other", MPI, "libmpi.so.12"), "libmpifort.so.0")
    result = CliRunner().invoke(app, ["abi", str(old), str(other), str(out)])
    assert isinstance(result.exception, CheckFailed)
    assert "soname of a binding" in str(result.exception)


def test_what_is_no_library_is_said(old: Path, tmp_path: Path) -> None:
    text = tmp_path / "libmpi.so"
    text.write_text("INPUT(libmpi.so.12)\n")
    (tmp_path / "empty").mkdir()
    for wrong in (text, tmp_path / "empty"):
        result = CliRunner().invoke(app, ["abi", str(old), str(wrong)])
        assert isinstance(result.exception, InvalidInput), result.output


def wrong(*words: object) -> str:
    result = CliRunner().invoke(app, ["abi", *map(str, words)])
    assert isinstance(result.exception, InvalidInput), result.output
    assert result.exception.exit_code == 3
    return str(result.exception)


def test_libraries_of_something_else_are_not_called_compatible(old: Path, tmp_path: Path) -> None:
    other = library(tmp_path / "other", "int f(void) { return 0; }\n", "libmpi.so.12")
    assert "this is not an MPI library" in wrong(other, other)
    assert "this is not an MPI library" in wrong("/bin/true", "/bin/true")
    assert str(other) in wrong(old, other)


def test_what_is_not_there_is_an_invalid_argument(old: Path, tmp_path: Path) -> None:
    assert "there is no such file or folder" in wrong(tmp_path / "none", old)
    assert "there is no such file" in wrong(old, old, tmp_path / "none")
    assert "this is a folder" in wrong(old, old, tmp_path)


def test_a_name_that_looks_like_an_option_is_a_name(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-v").write_bytes((old / "lib" / "libmpi.so").read_bytes())
    assert (
        CliRunner().invoke(app, ["abi", str(old / "lib" / "libmpi.so"), "--", "-v"]).exit_code == 0
    )


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nprintf 'caf\\351\\n' >&2; exit 1\n",  # words in Latin-1
        "#!/bin/sh\nexit 0\n",  # it makes no program
        "#!/nowhere/sh\n",
        "#!/bin/sh\nsleep 9\n",
    ],
)
def test_an_mpicc_that_does_not_work_is_named(
    old: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mvstack.abi.compare.SECONDS", 1)
    wrapper = old / "bin" / "mpicc"
    wrapper.parent.mkdir()
    wrapper.write_text(script)
    wrapper.chmod(0o755)
    said = wrong(old, old)
    assert str(wrapper) in said and "does not compile and start" in said


def test_a_library_for_another_processor_is_told(old: Path, tmp_path: Path) -> None:
    content = bytearray((old / "lib" / "libmpi.so").read_bytes())
    content[18:20] = b"\x28\x00" if content[18] == 0xB7 else b"\xb7\x00"  # e_machine: Arm
    new = tmp_path / "libmpi.so"
    new.write_bytes(content)
    result = CliRunner().invoke(app, ["abi", str(old), str(new)])
    assert isinstance(result.exception, CheckFailed) and "machine" in str(result.exception)
