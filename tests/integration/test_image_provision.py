"""The provisioning's own parts, lib.sh and run, on files and in throw-away Debians."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from images.base import base
from images.chroot import Chroot
from images.kits import PACKAGES
from images.needs import needs
from images.provisioning import SHELL, bash, kit_folder
from images.world import World
from source_server import closed_port

from mvstack.image.packer import TEMPLATES

RUN = "provision/run"
FETCH = 'read -ra row <<<"$1"; DOWNLOADS=("${row[*]}" "other 1 0 https://localhost/"); '


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    needs()
    with World() as made:
        yield made


@pytest.fixture
def chroot(world: World, tmp_path: Path) -> Chroot:
    made = Chroot(world, base(PACKAGES), tmp_path / "chroot")
    shutil.copytree(TEMPLATES / "provision", made.root / "kit/provision")
    return made


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o7777


# lib.sh: put and block


def put(folder: Path, file: Path, text: str, *mode: str) -> bool:
    """Whether it was changed; what it says and what it notes must agree."""
    code, said, changed = bash('put "$@"', str(file), *mode, folder=folder, given=text)
    assert code == 0, said
    assert (said, changed) in (("", ""), (f"    changed: {file}\n", f"{file}\n"))
    assert not list(folder.glob("put-*")) and not file.with_name(f"{file.name}.new").exists()
    return bool(changed)


def test_put_changes_what_is_not_so_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "etc/deep er/file.conf"
    assert put(tmp_path, file, "a = 1\n")
    assert (file.read_text(), mode(file)) == ("a = 1\n", 0o644)
    before = file.stat()
    assert not put(tmp_path, file, "a = 1\n")
    assert file.stat() == before
    assert put(tmp_path, file, "a = 2") and file.read_text() == "a = 2"  # no newline added
    assert put(tmp_path, file, "a = 2", "0755") and mode(file) == 0o755
    assert not put(tmp_path, file, "a = 2", "755")
    assert put(tmp_path, file, "a = 2") and mode(file) == 0o644
    file.chmod(0o4644)  # a bit that was not asked for
    assert put(tmp_path, file, "a = 2") and mode(file) == 0o644
    assert put(tmp_path, file, "") and file.read_bytes() == b""


def test_put_replaces_a_link_and_leaves_what_it_led_to(tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    other.write_text("right\n")
    file.symlink_to(other)
    assert put(tmp_path, file, "right\n")  # although the content is as it should be
    assert not file.is_symlink() and file.read_text() == "right\n"
    file.unlink()
    file.symlink_to("nothing")
    assert put(tmp_path, file, "new\n") and not file.is_symlink()
    assert other.read_text() == "right\n" and not (tmp_path / "nothing").exists()


def test_put_does_not_write_into_a_folder_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "folder/x").mkdir(parents=True)
    code, said, changed = bash('put "$1"', str(tmp_path / "folder"), folder=tmp_path, given="text")
    assert (code != 0, changed) == (True, "") and "cannot overwrite directory" in said
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["x"]


def block(folder: Path, file: Path, text: str) -> bool:
    code, said, changed = bash('block "$@"', str(file), "ours", folder=folder, given=text)
    assert code == 0, said
    assert changed in ("", f"{file}\n")
    return bool(changed)


def test_block_keeps_one_block_first_and_the_rest_as_it_was(tmp_path: Path) -> None:
    file, rest = tmp_path / "bashrc", "export A=1\n# <<< another\n"
    file.write_text(rest)
    file.chmod(0o600)
    assert block(tmp_path, file, "one\n")
    assert file.read_text() == f"# >>> ours\none\n# <<< ours\n{rest}"
    before = file.stat()
    assert not block(tmp_path, file, "one\n")
    assert file.stat() == before
    assert block(tmp_path, file, "two\nthree\n")
    assert file.read_text() == f"# >>> ours\ntwo\nthree\n# <<< ours\n{rest}"
    assert mode(file) == 0o600
    file.write_text(f"export B=1\n{file.read_text()}")
    assert block(tmp_path, file, "two\nthree\n")  # first again
    assert file.read_text() == f"# >>> ours\ntwo\nthree\n# <<< ours\nexport B=1\n{rest}"


def test_block_makes_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "etc/bashrc"
    assert block(tmp_path, file, "one\n")
    assert (file.read_text(), mode(file)) == ("# >>> ours\none\n# <<< ours\n", 0o644)
    assert not block(tmp_path, file, "one\n")


def test_block_does_not_lose_what_follows_a_block_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "bashrc"
    file.write_text("# >>> ours\none\nexport A=1\n")
    code, said, changed = bash('block "$@"', str(file), "ours", folder=tmp_path, given="two\n")
    assert (code, changed) == (1, "") and f"REFUSED: {file} has no line '# <<< ours'" in said
    assert file.read_text() == "# >>> ours\none\nexport A=1\n"


# lib.sh: refuse, fetch, newest_kernel, unit


def test_refuse_says_what_and_what_to_do_and_ends_the_step(tmp_path: Path) -> None:
    code, said, _ = bash("refuse 'no disk' 'bring one'; echo on", folder=tmp_path)
    assert (code, said) == (1, "REFUSED: no disk\n    to go on  bring one\n")
    code, said, _ = bash("refuse 'no disk'; echo on", folder=tmp_path)
    assert (code, said) == (1, "REFUSED: no disk\n")
    code, said, _ = bash("file=$(refuse 'no disk'); echo on", folder=tmp_path)
    assert (code, said) == (1, "REFUSED: no disk\n")


@contextlib.contextmanager
def https(folder: Path) -> Iterator[tuple[int, Path]]:
    """A server of the files in ``folder``: its port, and the certificate to trust it by."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    done = [*command, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(done, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1], certificate
        finally:
            server.shutdown()
            thread.join()


def fetch(folder: Path, row: str, name: str = "tool", **environment: str) -> tuple[int, str, Path]:
    """Status, what was printed, and where the file is to be."""
    script = FETCH + 'file=$(fetch "$2"); echo "file: $file"'
    code, said, changed = bash(script, row, name, folder=folder, **environment)
    assert changed == ""
    return code, said, folder / "downloads" / name


def test_fetch_downloads_once_and_refuses_another_hash(tmp_path: Path) -> None:
    for program in ("curl", "openssl"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    site = tmp_path / "site"
    site.mkdir()
    (site / "tool.tar").write_bytes(b"the tool")
    digest, wrong = hashlib.sha256(b"the tool").hexdigest(), "0" * 64
    with https(site) as (port, certificate):
        trusted = {"CURL_CA_BUNDLE": str(certificate), "no_proxy": "*"}
        url = f"https://localhost:{port}/tool.tar"
        code, said, file = fetch(tmp_path, f"tool 1.0 {digest} {url}", **trusted)
        assert (code, said) == (0, f"file: {file}\n")
        assert file.read_bytes() == b"the tool"
        file.unlink()
        code, said, file = fetch(tmp_path, f"tool 1.0 {wrong} {url}", **trusted)
        assert code == 1 and "file:" not in said
        assert f"REFUSED: tool from {url} has another hash: {digest} (expected {wrong})" in said
        assert "images.yaml" in said
        file.unlink(missing_ok=True)
        code, said, file = fetch(tmp_path, f"tool 1.0 {digest} {url}.gz", **trusted)
        assert code == 1 and "404" in said and not list(file.parent.iterdir())
        assert f"could not be downloaded from {url}.gz" in said
        code, said, file = fetch(tmp_path, f"tool 1.0 {digest} {url}", no_proxy="*")
        assert code == 1 and "certificate" in said and not list(file.parent.iterdir())


def test_fetch_takes_the_kits_own_file_without_a_network_and_looks_at_its_hash(
    tmp_path: Path,
) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    digest = hashlib.sha256(b"the tool").hexdigest()
    row = f"tool 1.0 {digest} https://localhost:{closed_port()}/tool.tar"
    code, said, file = fetch(tmp_path, row, no_proxy="*")
    assert code == 1 and f"to go on  bring it as {file.relative_to(tmp_path)}" in said
    file.write_bytes(b"the tool")
    assert fetch(tmp_path, row, no_proxy="*")[:2] == (0, f"file: {file}\n")
    file.write_bytes(b"a t00l")
    found = hashlib.sha256(b"a t00l").hexdigest()
    code, said, _ = fetch(tmp_path, row, no_proxy="*")
    assert code == 1 and f"has another hash: {found} (expected {digest})" in said
    assert file.read_bytes() == b"a t00l"


def test_fetch_refuses_what_is_not_in_the_table_and_what_is_not_https(tmp_path: Path) -> None:
    for name in ("too", "tool-2", "1.0"):
        code, said, _ = fetch(tmp_path, f"tool 1.0 {'0' * 64} https://localhost/", name)
        assert code == 1 and f"{name} is not in the table of downloads" in said
    code, said, _ = bash("DOWNLOADS=(); fetch tool", folder=tmp_path)
    assert code == 1 and "tool is not in the table of downloads" in said
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    code, said, _ = fetch(tmp_path, f"tool 1.0 {'0' * 64} http://127.0.0.1:{closed_port()}/")
    assert code == 1 and "http" in said and "could not be downloaded" in said


def in_chroot(chroot: Chroot, script: str) -> tuple[int, list[str], str]:
    """``script`` after lib.sh in there: its status, the lines it printed, what it changed."""
    (chroot.root / "tmp/changes").write_text("")
    code, said = chroot.run(
        *SHELL,
        f"source /kit/provision/lib.sh\n{script}",
        **{"CHANGES": "/tmp/changes", "KIT": "/kit", "FAMILY": "debian"},
    )
    return code, said.splitlines(), (chroot.root / "tmp/changes").read_text()


def test_the_newest_kernel_is_that_of_the_highest_version(chroot: Chroot) -> None:
    modules = chroot.root / "usr/lib/modules"
    shutil.rmtree(modules, ignore_errors=True)
    assert in_chroot(chroot, "newest_kernel") == (0, [""], "")
    older = ("4.18.0-553.el8_10.x86_64", "4.18.0-553.75.1.el8_10.x86_64")
    for version in (*older, "4.18.0-477.27.1.el8_8.x86_64"):
        (modules / version).mkdir(parents=True)
    assert in_chroot(chroot, "newest_kernel") == (0, [older[1]], "")
    for version in ("6.1.0-9-amd64", "6.1.0-41-amd64", "6.1.0-40-cloud-amd64", "5.14.0-611.el9"):
        (modules / version).mkdir(parents=True)
    (modules / "9.9-a-file").touch()
    assert in_chroot(chroot, "newest_kernel") == (0, ["6.1.0-41-amd64"], "")


def test_units_are_set_for_the_next_start_and_set_but_once(chroot: Chroot) -> None:
    install = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
    chroot.put("/etc/systemd/system/ours.service", install)
    chroot.put("/usr/lib/systemd/system/packaged.service", install)
    chroot.put("/usr/lib/systemd/system/fixed.service", "[Service]\nExecStart=/bin/true\n")
    system = chroot.root / "etc/systemd/system"
    link = system / "multi-user.target.wants/ours.service"

    def unit(name: str, state: str, changes: bool) -> str:
        for expected in (changes, False):  # the second time there is nothing to do
            code, said, changed = in_chroot(chroot, f"unit {name} {state}")
            assert code == 0, said
            assert changed == (f"unit {name} is {state}\n" if expected else ""), said
        return chroot.run("systemctl", "--root=/", "is-enabled", name)[1].strip()

    assert unit("ours.service", "enabled", True) == "enabled" and link.is_symlink()
    assert unit("ours.service", "disabled", True) == "disabled" and not link.is_symlink()
    assert unit("packaged.service", "disabled", False) == "disabled"
    assert unit("packaged.service", "masked", True) == "masked"
    assert (system / "packaged.service").readlink() == Path("/dev/null")
    assert unit("packaged.service", "enabled", True) == "enabled"
    assert unit("fixed.service", "enabled", False) == "static"
    assert unit("fixed.service", "disabled", False) == "static"
    assert unit("fixed.service", "masked", True) == "masked"
    assert "No such file" in unit("nowhere.service", "enabled", False)
    unit("nowhere.service", "masked", False)
    assert not (system / "nowhere.service").is_symlink()
    code, said, changed = in_chroot(chroot, "unit ours.service of")
    assert (code, changed) == (1, "") and "REFUSED: unit ours.service: of is no state" in said


# run


def run(kit: Path, *words: str, prefix: tuple[str, ...] = ()) -> tuple[int, str]:
    if os.geteuid() != 0:
        pytest.skip("needs root: provision/run refuses anybody else")
    done = subprocess.run(
        [*prefix, str(kit / RUN), *words], capture_output=True, text=True, check=False, cwd="/"
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("false", 1),
        ("(exit 7)", 7),
        ("false | cat", 1),
        ("value=$(false; echo on)", 1),
        ('echo "$NOT_SET"', 1),
        ("kill -TERM $$", 143),
        ("no-such-command", 127),
    ],
)
def test_a_step_ends_where_it_fails_and_the_next_does_not_begin(
    tmp_path: Path, line: str, status: int
) -> None:
    script = f"touch {tmp_path}/before\n{line}\ntouch {tmp_path}/after\n"
    steps = {"10-fails.sh": script, "20-next.sh": f"touch {tmp_path}/next\n"}
    code, said = run(kit_folder(tmp_path / "a kit", steps))
    assert code == 1
    last = f"FAILED: provisioning step 10-fails.sh ended with status {status}"
    assert said.splitlines()[-1] == last and "changed:" not in said
    assert {path.name for path in tmp_path.iterdir()} == {"a kit", "before"}


def test_a_function_of_a_step_that_fails_ends_it_too(tmp_path: Path) -> None:
    script = "work() { false; echo went on; }\nwork\necho went on\n"
    code, said = run(kit_folder(tmp_path / "kit", {"10-fails.sh": script}))
    assert code == 1 and "went on" not in said and "step 10-fails.sh ended" in said


def test_steps_share_no_variables_and_see_those_of_the_image(tmp_path: Path) -> None:
    first = 'MINE=1 FAMILY=changed\ncd /usr\numask 077\nset +u\nexport MINE\nsay "$OS $KERNEL"\n'
    second = '[[ -z ${MINE:-} && $FAMILY == debian && $PWD == "$KIT" && $(umask) == *22 ]]\n'
    second += "read -r line && exit 1\n[[ $- == *e*u* ]]\n"
    code, said = run(kit_folder(tmp_path / "kit", {"10-a.sh": first, "20-b.sh": second}))
    assert code == 0, said
    assert "    debian12 " in said and said.splitlines()[-1].startswith("changed: 0 ")


def test_a_run_that_was_to_change_nothing_and_does_says_what(tmp_path: Path) -> None:
    steps = {
        "10-once.sh": f"put '{tmp_path}/one' <<<text\n",
        "20-always.sh": "changed 'package of the day'\n",
    }
    kit = kit_folder(tmp_path / "kit", steps)
    code, said = run(kit)
    assert code == 0 and said.splitlines()[-1].startswith("changed: 2 "), said
    code, said = run(kit, "--expect-unchanged")
    assert code == 1 and "\nchanged: 1 " in said
    assert said.splitlines()[-2:] == [
        "FAILED: a second run must change nothing, and it changed:",
        "    package of the day",
    ]
    (kit / "provision/20-always.sh").write_text("true\n")
    assert run(kit, "--expect-unchanged")[0] == 0
    code, said = run(kit, "--expect-unchange")
    assert code == 1 and "--expect-unchange is no option" in said


def test_only_root_provisions() -> None:
    with tempfile.TemporaryDirectory(prefix="mvstack-kit-") as folder:  # pytest's is root's alone
        Path(folder).chmod(0o777)
        kit = kit_folder(Path(folder) / "kit", {"10-a.sh": f"touch {folder}/done\n"})
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        code, said = run(kit, prefix=nobody)
        assert (code, said) == (1, "provision/run: needs root\n")
        assert not (Path(folder) / "done").exists()
