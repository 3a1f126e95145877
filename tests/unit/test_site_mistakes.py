"""What a person writes wrongly in a site's folder is told with the site's file and line."""

import io
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import StringConstraints

from mvstack.cli.rendering import render_systems
from mvstack.install import stages
from mvstack.model import text
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.release import Addition
from mvstack.recipes.rows import check_rows
from mvstack.render.templates import site_lua
from mvstack.support.errors import InvalidInput, MvstackError, Refused
from mvstack.support.home import DATA, home
from mvstack.test.expected import expected_checks

ROW = """  - name: {name}
    version: "{version}"
    title: A solver
    module: {module}
    page: {page}
    why: somebody wants it
"""
GOOD = {"name": "Zeta", "version": "1", "module": "zeta/1", "page": "https://zeta.example.org"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MVSTACK_SITE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "releases").mkdir()
    (tmp_path / "policy").mkdir()
    return tmp_path


def rows(site: Path, *changes: dict[str, str]) -> None:
    head = 'name: "2026.11"\nextends: "2026.11"\npackages:\n'
    said = head + "".join(ROW.format(**GOOD | one) for one in changes)
    (site / "releases" / "2026.11.yaml").write_text(said)


def test_a_version_of_an_mpi_that_cannot_be_compared_is_told(site):
    head = 'name: "2026.11"\nextends: "2026.11"\nmpi:\n  mvapich:\n'
    (site / "releases" / "2026.11.yaml").write_text(f'{head}  - {{version: "4.0-mysite", why: x}}')
    with pytest.raises(InvalidInput, match=r"2026.11.yaml:5: .* such as 4.0 or 4.0\+mysite is"):
        load_release()


def test_a_row_without_easyconfig_is_named_in_the_file_of_the_site(site):
    rows(site, {})
    with pytest.raises(InvalidInput) as caught:
        check_rows([load_release()], load_policy())
    (problem,) = caught.value.problems
    assert problem.where == "releases/2026.11.yaml:4"
    assert "Zeta-1-gmvapich-2026.11-ofi.eb" in problem.message


def test_a_module_with_two_rows_is_refused(site):
    rows(site, {}, {}, {"module": "hpcc/1.5.0", "name": "HPCC", "version": "1.5.0"})
    with pytest.raises(InvalidInput) as caught:
        check_rows([load_release()], load_policy())
    twice = [one for one in caught.value.problems if "has a row already" in one.message]
    assert [one.where for one in twice] == ["releases/2026.11.yaml:10", "releases/2026.11.yaml:16"]
    assert "releases/2026.11.yaml:4" in twice[0].message


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("module", "../../foo", "a module's name/version is expected"),
        ("name", "../Foo", "letters, digits and . _ + -"),
        ("version", "1 0", "letters, digits and . _ + -"),
        ("page", "'javascript:alert(1)'", "an address with http:// or https:// is expected"),
    ],
)
def test_what_is_not_of_its_form_is_told_in_words(site, field, value, expected):
    rows(site, {field: value})
    with pytest.raises(InvalidInput) as caught:
        load_release()
    (problem,) = caught.value.problems
    assert expected in problem.message
    assert "pattern" not in problem.message


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("zeta@=1 ; rm -rf /", "; rm -rf /: is not a known word of a spec"),
        ("zeta@=1 $(id)", "$(id): is not a known word of a spec"),
        ("@=1", "a package's name is expected"),
    ],
)
def test_a_spec_that_the_lock_would_refuse_is_refused_at_once(site, spec, expected):
    rows(site, {"page": f'https://zeta.example.org\n    spack: "{spec}"'})
    with pytest.raises(InvalidInput) as caught:
        load_release()
    (problem,) = caught.value.problems
    assert problem.where.startswith("releases/2026.11.yaml:9")
    assert expected in problem.message


def test_every_kind_of_text_has_words():
    kinds = [one for name, one in vars(text).items() if name[0].isupper() and get_args(one)]
    kinds.append(Addition.model_fields["name"])
    patterns = {
        part.pattern
        for kind in kinds
        for part in getattr(kind, "__metadata__", None) or getattr(kind, "metadata", [])
        if isinstance(part, StringConstraints) and part.pattern
    }
    assert patterns
    assert patterns <= set(text.WORDS)


def test_a_policy_file_that_nothing_reads_is_named(site):
    (site / "policy" / "fabric.yaml").write_text("fabrics: {}\n")
    with pytest.raises(InvalidInput) as caught:
        load_policy()
    (problem,) = caught.value.problems
    assert problem.where == "policy/fabric.yaml"
    assert problem.nearest == "fabrics.yaml"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "launchers.yaml",
            "launchers: [{id: x, when: {}, pmi: [simple], launch: 'run -n {rank} {program}', "
            "why: w, source: s}]\n",
            "{ranks} and {program} must be in it",
        ),
        (
            "products.yaml",
            "products: {x: {title: t, form: source, version_text: '(', sonames: {}, source: s}}\n",
            "no regular expression",
        ),
    ],
)
def test_a_policy_value_that_fails_only_later_is_refused_at_once(site, file, text, expected):
    (site / "policy" / file).write_text(text)
    with pytest.raises(InvalidInput, match=f"policy/{file}:1.*{re.escape(expected)}"):
        load_policy()


def test_a_partition_that_is_misspelt_is_told_as_such(tmp_path):
    with pytest.raises(InvalidInput, match="expanse has no partition cpuu"):
        stages.installed_here("expanse/cpuu", None, tmp_path, "test")
    with pytest.raises(Refused, match="nothing is installed for expanse/cpu"):
        stages.installed_here("expanse/cpu", None, tmp_path, "test")


def test_a_system_on_standard_input_is_given_there_again(tmp_path, monkeypatch):
    text = home().file("systems", "expanse.yaml").read_text().replace("name: expanse", "name: mine")
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    for name, told in {
        "-": "… | mvstack test -/cpu",
        "-/gpu": "… | mvstack install -/gpu",
        str(file): f"mvstack test {file}/cpu",
    }.items():
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        with pytest.raises(MvstackError) as caught:
            stages.installed_here(name, None, tmp_path, "test")
        assert caught.value.problems[0].todo.startswith(told)


@pytest.mark.parametrize("written", [b"x = 1\ndef (\n", b"x = 1\n# \xff\n", b"x = 1\n\0"])
def test_a_check_that_is_no_python_is_told_with_its_line(site, written):
    (site / "checks").mkdir()
    (site / "checks" / "zeta.py").write_bytes(written)
    with pytest.raises(InvalidInput) as caught:
        expected_checks(site / "checks", [])
    assert caught.value.problems[0].where.startswith("checks/zeta.py:")


def test_lua_of_the_site_that_is_no_text_is_told_with_its_line(site):
    (site / "modulefiles").mkdir()
    (site / "modulefiles" / "site.lua").write_bytes(b"-- x\n-- caf\xe9\n")
    with pytest.raises(InvalidInput, match=r"modulefiles/site\.lua:2: is not UTF-8"):
        site_lua()


def test_a_folder_called_like_a_file_is_told(site):
    (site / "systems" / "mine.yaml").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=r"systems/mine\.yaml: this is not a file"):
        load_system("mine")
    (site / "policy" / "builds.yaml").mkdir()
    with pytest.raises(InvalidInput, match=r"policy/builds\.yaml: this is not a file"):
        load_policy()


def test_render_into_a_file_is_refused_before_anything_is_planned(tmp_path):
    (tmp_path / "there").write_text("mine\n")
    with pytest.raises(InvalidInput, match="this is a file, not a folder"):
        render_systems(["expanse"], tmp_path / "there", check=False)
    assert (tmp_path / "there").read_text() == "mine\n"


@pytest.mark.parametrize("names", [["expanse"], []])
def test_a_sites_systems_never_overwrite_the_files_of_this_repository(site, monkeypatch, names):
    """Also where the site's has the name of one of ours, and ours under the site's policy."""
    for name in ("write", "write_atomically"):
        monkeypatch.setattr(f"mvstack.cli.rendering.{name}", lambda *_: pytest.fail("written"))
    ours = (DATA / "environments" / "systems" / "expanse.yaml").read_text()
    (site / "systems").mkdir()
    (site / "systems" / "expanse.yaml").write_text(ours.replace("zen2", "zen3"))
    with pytest.raises(InvalidInput, match="--to is needed"):
        render_systems(names, None, check=False)
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match="for the systems of this repository only"):
        render_systems([str(site / "systems" / "expanse.yaml")], None, check=False)
