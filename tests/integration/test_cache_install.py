"""From one root through a cache into another: what arrives, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_tree import Site
from install_tree import plan_in, states

from mvstack.cache import gpg, store, unpack, use
from mvstack.cache.manifest import Archive
from mvstack.cache.place import Unreachable, place
from mvstack.cache.push import look
from mvstack.support.errors import InvalidInput, Locked, Refused
from mvstack.support.files import sha256_of
from mvstack.tree.folder import locked
from mvstack.tree.records import Records

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
ALL = ["GCC", "MVAPICH", "gmvapich", "HPCC"]


@pytest.fixture(scope="module")
def key_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("keys") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MVSTACK_GNUPGHOME", str(home))
        gpg.create("Site of the tests", "a@example.org")
    return home


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_home: Path) -> Site:
    made = Site(tmp_path, monkeypatch, key_home)
    made.fill()
    return made


def test_a_second_root_gets_all_of_it_and_nothing_is_built(site: Site) -> None:
    assert [row["result"] for row in site.push()] == ["pushed"] * 4
    rows = site.install(only=True)
    assert [row["package"] for row in rows] == ALL and site.built() == []
    assert set(states(site.other).values()) == {"present"}
    assert {row["result"] for row in rows} == {"cached"}
    assert rows[0]["signed_by"] == gpg.own_key().fingerprint
    assert rows[0]["sources"][0]["file"] == "x.tar.gz" and rows[0]["built"]["host"] == "node1"
    assert site.install(only=True) == []


def test_paths_are_rewritten_and_logs_stay_at_home(site: Site) -> None:
    site.push()
    site.install()
    tree = Path(site.other.tree)
    own = next((tree / "software" / "HPCC").iterdir())
    program = (own / "bin" / "tool").read_bytes()
    original = next((Path(site.builder.tree) / "software" / "HPCC").iterdir()) / "bin" / "tool"
    assert len(program) == len(original.read_bytes()) and program.endswith(b"\0\1end")
    assert str(tree).encode() in program and site.builder.tree.encode() not in program
    assert (own / "bin" / "wrapper").read_text() == f"#!/bin/sh\nexec {own}/bin/tool\n"
    assert os.access(own / "bin" / "tool", os.X_OK)
    assert not os.access(own / "bin" / "wrapper", os.X_OK)
    assert str((own / "lib" / "near").readlink()) == "../bin/tool"
    assert str((own / "lib" / "far").readlink()) == f"{own}/bin/tool"
    assert (own / "lib" / "empty").is_dir()
    assert not list(tree.rglob("*.log")) and not list(tree.glob(".*"))
    for file in (tree / "modules").rglob("*.lua"):
        assert site.builder.tree not in file.read_text()
    assert len(list((tree / "ebfiles_repo").rglob("*.eb"))) == 4


def test_modes_follow_the_umask(site: Site) -> None:
    site.push()
    umask = os.umask(0o022)
    os.umask(umask)
    site.install()
    tree = Path(site.other.tree)
    assert {p.stat().st_mode & 0o777 for p in tree.glob("software/*/*/bin/tool")} == {0o755}
    assert {p.stat().st_mode & 0o777 for p in tree.glob("software/*/*/bin/wrapper")} == {0o644}


# --- what is refused -----------------------------------------------------------------------------


def unsigned(site: Site) -> None:
    manifest, _ = site.files_of("MVAPICH")
    manifest.write_text(gpg.verified(manifest.read_bytes())[0])


def changed_manifest(site: Site) -> None:
    manifest, _ = site.files_of("MVAPICH")
    manifest.write_text(manifest.read_text().replace("MVAPICH", "EVILAPI"))


def truncated(site: Site) -> None:
    _, archive = site.files_of("MVAPICH")
    archive.write_bytes(archive.read_bytes()[:-1])


def changed_byte(site: Site) -> None:
    _, archive = site.files_of("MVAPICH")
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)


def lost_archive(site: Site) -> None:
    site.files_of("MVAPICH")[1].unlink()


def swapped(site: Site) -> None:
    shutil.copyfile(site.files_of("HPCC")[0], site.files_of("MVAPICH")[0])


def another_key(site: Site) -> None:
    home, other = os.environ["MVSTACK_GNUPGHOME"], site.top / "evil"
    manifest, _ = site.files_of("MVAPICH")
    text, _ = gpg.verified(manifest.read_bytes())
    site.monkeypatch.setenv("MVSTACK_GNUPGHOME", str(other))
    manifest.write_text(gpg.sign(text, gpg.create("Another site", "b@example.org").fingerprint))
    site.monkeypatch.setenv("MVSTACK_GNUPGHOME", home)


Damage = Callable[[Site], None]
DAMAGES = [
    (unsigned, "not signed"),
    (changed_manifest, "changed after it was signed"),
    (truncated, "bytes instead of"),
    (changed_byte, "has sha256"),
    (lost_archive, "is not there"),
    (swapped, "filed as another"),
    (another_key, "not trusted here"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_an_entry_that_is_not_as_it_was_pushed_stops_it_all(
    site: Site, damage: Damage, why: str
) -> None:
    site.push()
    damage(site)
    with pytest.raises(Refused, match=why) as error:
        site.install()
    assert "Nothing was installed" in str(error.value) and "--build-refused" in str(error.value)
    assert "MVAPICH-4.0" in str(error.value)
    assert set(states(site.other).values()) == {"missing"} and site.built() == []
    assert not list(Path(site.other.tree).glob("modules/**/*.lua"))
    assert not (Path(site.other.tree) / use.WAITING).exists()


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_it_is_built_instead_where_the_user_says_so(site: Site, damage: Damage, why: str) -> None:
    site.push()
    damage(site)
    rows = site.install(build_refused=True)
    results = {row["package"]: row["result"] for row in rows}
    assert results == {"GCC": "cached", "MVAPICH": "built", "gmvapich": "cached", "HPCC": "cached"}
    assert len(site.built()) == 1 and site.built()[0].startswith("MVAPICH-4.0")


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_verify_finds_it_and_pushing_again_mends_it(site: Site, damage: Damage, why: str) -> None:
    site.push()
    damage(site)
    bad = [one for one in look(site.place, whole=True) if one.state == "refused"]
    assert len(bad) == 1 and why in bad[0].why
    assert [row["result"] for row in site.push()].count("pushed") == 1
    assert all(one.state == "good" for one in look(site.place, whole=True))
    assert len(list(site.cache.rglob("*.tar.gz"))) == 4


def test_an_entry_that_cannot_be_read_hides_no_other(site: Site) -> None:
    site.push()
    file = next(site.cache.rglob("*.json.asc"))
    file.unlink()
    file.mkdir()
    found = list(look(site.place, whole=True))
    assert [one.state for one in found].count("good") == 3
    assert "Is a directory" in next(one.why for one in found if one.state == "refused")


def test_an_index_of_brackets_is_an_index_of_nothing(site: Site) -> None:
    (site.cache / "easybuild").mkdir(parents=True)
    (site.cache / store.INDEX).write_text("[" * 200_000)
    assert store.rows(site.place) == []


def test_an_archive_that_was_pushed_damaged_is_refused_whole(site: Site) -> None:
    """Signed by the right key over the right hash, and yet with a file of another package."""
    site.push()
    manifest_file, archive = site.files_of("MVAPICH")
    entry = store.find(site.place, "almalinux8", manifest_file.name.split(".")[0])
    assert entry is not None
    with tarfile.open(archive) as old, tarfile.open(site.top / "new.tar.gz", "w:gz") as new:
        for one in old.getmembers():
            new.addfile(one, old.extractfile(one) if one.isreg() else None)
        new.addfile(tarfile.TarInfo("software/HPCC/evil"))
    shutil.move(site.top / "new.tar.gz", archive)
    named = Archive(sha256=sha256_of(archive), size=archive.stat().st_size)
    forged = entry.manifest.model_copy(update={"archive": named})
    shutil.move(archive, site.cache / store.archive_name(forged))
    manifest_file.write_text(gpg.sign(forged.text(), gpg.own_key().fingerprint))
    with pytest.raises(Refused, match="evil is not one of this package's files"):
        site.install()
    assert states(site.other)["MVAPICH"] == "missing"
    assert not list(Path(site.other.tree).glob("software/*/evil"))


def test_a_longer_root_is_refused_with_the_longest_that_fits(site: Site) -> None:
    site.push()
    longer = plan_in(site.top / "the-root-of-the-builder-and-more")
    with pytest.raises(Refused, match="is longer") as error:
        site.install(longer)
    longest = len(site.builder.root)
    assert f"of at most {longest} characters" in str(error.value)
    same_length = plan_in(site.top / "the-root-of-the-buildex")
    assert len(same_length.root) == longest
    assert len(site.install(same_length)) == 4


def test_text_alone_fits_any_root(site: Site) -> None:
    for tool in Path(site.builder.tree).glob("software/*/*/bin/tool"):
        tool.write_text("#!/bin/sh\n")
    site.push()
    assert len(site.install(plan_in(site.top / "the-root-of-the-builder-and-more"))) == 4


def test_a_packed_file_that_names_the_tree_is_refused_elsewhere(site: Site) -> None:
    import gzip

    own = next(Path(site.builder.tree).glob("software/HPCC/*"))
    (own / "manual.gz").write_bytes(gzip.compress(f"see {own}".encode()))
    site.push()
    with pytest.raises(Refused, match=r"manual\.gz is compressed"):
        site.install()


def test_a_library_that_this_machine_lacks_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.push()
    monkeypatch.setattr(use, "lacking", lambda needs: ["libfabric.so.1"])
    with pytest.raises(Refused, match=r"libfabric\.so\.1, which this machine lacks"):
        site.install()


def test_what_is_in_no_cache_is_built_unless_nothing_may_be(site: Site) -> None:
    site.push()
    for file in site.files_of("HPCC"):
        file.unlink()
    with pytest.raises(Refused, match=r"HPCC-1\.5\.0.* is in no cache"):
        site.install(only=True)
    rows = site.install()
    assert [row["package"] for row in rows if row["result"] == "built"] == ["HPCC"]


def test_a_cache_that_cannot_be_asked_is_no_reason_to_fail(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = site.install()
    assert [row["result"] for row in rows] == ["built"] * 4
    other = plan_in(site.top / "third")
    with pytest.raises(Refused, match="there is no such folder"):
        site.install(other, only=True)


def test_a_cache_that_cannot_be_looked_into_is_not_called_empty(site: Site) -> None:
    site.push()
    (site.cache / "easybuild").rename(site.cache / "away")
    assert list(look(site.place, whole=False)) == []
    (site.cache / "easybuild").touch()
    with pytest.raises(Unreachable, match="easybuild: Not a directory"):
        list(look(site.place, whole=False))
    (site.cache / "loop").symlink_to("loop")
    (site.cache / "file").touch()
    for name, why in (
        ("loop", "Too many levels"),
        ("file", "not a folder"),
        ("x", "no such folder"),
    ):
        with pytest.raises(Unreachable, match=why):
            place(str(site.cache / name)).read("easybuild/index.json")


def test_the_first_cache_that_may_be_used_counts(site: Site) -> None:
    site.push()
    bad = site.top / "bad"
    shutil.copytree(site.cache, bad)
    for manifest in bad.rglob("*.json.asc"):
        manifest.write_text("{}")
    site.monkeypatch.setenv("MVSTACK_CACHES", str(bad))
    rows = site.install(build_refused=True)  # --cache comes before MVSTACK_CACHES
    assert {row["cache"] for row in rows} == {str(site.cache)}


def test_only_without_a_cache_is_refused() -> None:
    with pytest.raises(Refused, match="none is named"):
        use.site_caches([], only=True)


# --- what EasyBuild brought along ----------------------------------------------------------------


def test_what_no_plan_names_comes_with_what_needs_it(site: Site) -> None:
    tree = Path(site.builder.tree)
    for name, asks in {"GCCcore": "binutils/2.39", "binutils": "", "unused": ""}.items():
        own = tree / "software" / name / ("12.2.0" if name == "GCCcore" else "2.39")
        (own / "lib").mkdir(parents=True)
        (own / "lib" / "file").write_text(str(own))
        folder = tree / "modules" / "Core" / name.lower()
        folder.mkdir(parents=True)
        text = f'local root = "{own}"\n' + (f'depends_on("{asks}")\n' if asks else "")
        (folder / f"{own.name}.lua").write_text(text)
        kept = tree / "ebfiles_repo" / name / f"{name}-{own.name}.eb"
        kept.parent.mkdir(parents=True)
        kept.write_text(f"name = '{name}'\n")
    module = tree / "modules" / "Core" / "gcc" / "12.2.0.lua"
    module.write_text(module.read_text() + 'depends_on("gcccore/12.2.0")\n')
    rows = site.push()
    assert {row["package"] for row in rows} == {*ALL, "GCCcore", "binutils"}
    site.install(only=True)
    other = Path(site.other.tree)
    for name in ("gcccore/12.2.0", "binutils/2.39"):
        assert str(other) in (other / "modules" / "Core" / f"{name}.lua").read_text()
    assert (other / "software" / "binutils" / "2.39" / "lib" / "file").is_file()
    assert not (other / "modules" / "Core" / "unused").exists()
    assert site.install(only=True) == []
    # without one of them what needs it is refused
    for file in site.files_of("binutils"):
        file.unlink()
    with pytest.raises(Refused, match="what it requires is not in the cache"):
        site.install(plan_in(site.top / "third"))


# --- killed and changed --------------------------------------------------------------------------

MOMENTS = ["mkdir", "sync", "software", "module", "record"]


def kill_at(moment: str) -> None:
    """In a child: be killed at one moment of installing MVAPICH."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    take, sync, write = unpack._take, os.sync, unpack._write

    def taken(source: Path, target: Path) -> None:
        if "mvapich" in str(target).lower() and "/gmvapich" not in str(target):
            if moment == "software" and "software" in target.parts:
                die()
            if moment == "module" and target.suffix == ".lua" and "Compiler" in target.parts:
                die()
        take(source, target)

    def written(path: Path, *rest: object) -> None:
        if moment == "mkdir" and "MVAPICH" in path.parts:
            die()
        write(path, *rest)  # type: ignore[arg-type]

    def synced() -> None:
        if moment == "sync" and any(Path(p).name == "MVAPICH" for p in incoming()):
            die()
        sync()

    def incoming() -> list[str]:
        return [str(p) for p in Path.cwd().glob(f"**/{unpack.INCOMING}/software/*")]

    built = Records.built

    def recorded(self: Records, easyconfig: str, content: str) -> None:
        if moment == "record" and easyconfig.startswith("MVAPICH"):
            die()
        built(self, easyconfig, content)

    unpack._take, os.sync, unpack._write = taken, synced, written  # type: ignore[assignment]
    Records.built = recorded  # type: ignore[method-assign]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_in_the_middle_nothing_half_done_can_be_loaded(site: Site, moment: str) -> None:
    site.push()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(site.top)
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
            kill_at(moment)
            site.install()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    tree = Path(site.other.tree)
    module = tree / "modules" / "Compiler" / "gcc" / "12.2.0" / "mvapich" / "4.0-ucx.lua"
    assert module.is_file() == (moment == "record")
    if module.is_file():
        assert (next((tree / "software" / "MVAPICH").iterdir()) / "bin" / "tool").is_file()
    assert not (tree / "modules" / "Core" / "mvapich-stack").exists()
    site.install()
    assert set(states(site.other).values()) == {"present"} and site.built() == []
    assert not list(tree.glob(".*")) and not list(tree.glob(f"{unpack.INCOMING}*"))


def test_a_changed_package_replaces_the_old_one(site: Site) -> None:
    site.push()
    site.install()
    tree = Path(site.other.tree)
    own = next((tree / "software" / "HPCC").iterdir())
    (own / "stale").touch()
    records = Records(tree)
    records.built("HPCC-1.5.0-gmvapich-2026.11-ucx.eb", "0" * 64)
    records.begin("something else", "")
    assert [row["package"] for row in site.install()] == ["HPCC"]
    assert not (own / "stale").exists() and (own / "bin" / "tool").is_file()


def test_nothing_is_pushed_while_somebody_installs(site: Site) -> None:
    with locked(Path(site.builder.root)), pytest.raises(Locked):
        site.push()


def test_what_is_not_whole_is_not_pushed(site: Site) -> None:
    plan = site.builder
    module = Path(plan.tree) / "modules/Compiler/gcc/12.2.0/mvapich/4.0-ucx.lua"
    module.unlink()
    assert [row["package"] for row in site.push()] == ["GCC", "gmvapich", "HPCC"]


def test_a_cache_is_a_folder_or_an_address(tmp_path: Path) -> None:
    for name in (
        *("ftp://x/y", "s3://bucket", "", " ", "http://", "https:///x", "http://[", "http://h:x/"),
        *("file://", "file://elsewhere/x", "file://x", "~nobody-of-that-name/x"),
    ):
        with pytest.raises(InvalidInput):
            place(name)
    with pytest.raises(InvalidInput, match="only a folder can be pushed to"):
        place("https://example.org/cache").writable()
    assert place(tmp_path.as_uri()).folder == tmp_path


def test_records_that_are_no_text_stop_no_push(site: Site) -> None:
    tree = Path(site.builder.tree)
    with (tree / "records" / "builds.jsonl").open("ab") as stream:
        stream.write(b"\xff\n")
    (tree / "modules" / "all").mkdir(parents=True, exist_ok=True)
    (tree / "modules" / "all" / "odd.lua").write_bytes(b"\xff\n")
    assert len(site.push()) == 4


def test_a_plan_of_another_version_of_this_tool_is_read(site: Site) -> None:
    file = Path(site.builder.tree) / "records" / "plan.json"
    plan = json.loads(file.read_text())
    for build in plan["mpi"]:
        build.pop("accepted_sha256")
        build["from_the_future"] = {"x": 1}
    file.write_text(json.dumps(plan))
    assert len(site.push()) == 4
