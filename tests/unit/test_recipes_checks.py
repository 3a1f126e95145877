"""Each rule for recipes is broken once, and the message says where and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recipes import checks
from recipes.model import Recipe
from recipes.reading import read_recipe
from recipes.wanted import unmet

from mvstack.model.load import load_policy
from mvstack.sources.spec import Known, Whose
from mvstack.support.errors import InvalidInput, Problem

GOOD = "a" * 64
REFUSED = "c" * 64


def recipe(
    folder: Path,
    body: str = "",
    name: str = "my_pkg",
    cls: str = "MyPkg",
    doc: str = "Text.",
    bases: str = "AutotoolsPackage",
) -> Recipe:
    home = folder / name
    home.mkdir(exist_ok=True)
    lines = "\n".join("    " + line for line in body.splitlines())
    (home / "package.py").write_text(
        "from spack_repo.builtin.build_systems.autotools import AutotoolsPackage\n"
        "from spack_repo.builtin.packages.zlib.package import Zlib\n"
        "from spack.package import *\n"
        f'class {cls}({bases}):\n    """{doc}"""\n{lines}\n    pass\n'
    )
    return read_recipe(home / "package.py")


def said(rule: Callable[[Recipe], Iterator[Problem]], found: Recipe) -> list[str]:
    return [problem.message for problem in rule(found)]


def test_names(tmp_path: Path) -> None:
    assert said(checks.names, recipe(tmp_path, 'license("MIT")')) == []
    assert said(checks.names, recipe(tmp_path, 'license("MIT")', cls="Mypkg")) == [
        "Spack looks for the class MyPkg in this folder"
    ]
    assert said(checks.names, recipe(tmp_path)) == ["it has no license(…)"]
    assert said(checks.names, recipe(tmp_path, 'license("MIT")', doc="")) == [
        "it has no docstring for `spack info`"
    ]


def test_a_recipe_that_mends_builtin_says_why(tmp_path: Path) -> None:
    (problem,) = checks.reasons(recipe(tmp_path, doc="Faster.", bases="Zlib"))
    assert "it inherits builtin's zlib and does not say why" in problem.message
    assert not said(checks.reasons, recipe(tmp_path, doc="Upstream's is wrong.", bases="Zlib"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('variant("x", default=True)', "variant x has no description"),
        (
            'variant("x", default="c", values=("a", "b"), description="D")',
            "the default of variant x is not one of its values",
        ),
    ],
)
def test_variants(tmp_path: Path, line: str, message: str) -> None:
    assert said(checks.variants, recipe(tmp_path, line)) == [message]


def test_refusals_teach(tmp_path: Path) -> None:
    good = 'conflicts("+a", when="+b", msg="a has no b: use +c")'
    assert not said(checks.refusals, recipe(tmp_path, good))
    (silent,) = said(checks.refusals, recipe(tmp_path, 'conflicts("+a", when="+b")'))
    assert silent == "conflicts('+a', when='+b') has no message"
    (dull,) = said(checks.refusals, recipe(tmp_path, 'requires("+a", msg="a is needed")'))
    assert "does not say what to use instead" in dull


def test_urls(tmp_path: Path) -> None:
    version = f'version("1.0", sha256="{GOOD}")'
    good = f'url = "https://example.org/a-0.9.tar.gz"\n{version}'
    assert not said(checks.urls, recipe(tmp_path, good))
    for url, message in {
        "http://example.org/a-0.9.tar.gz": "the source of 1.0 is not fetched over https",
        "https://example.org/a.tar.gz": "the source of 1.0 is not fetched over https",
    }.items():
        assert said(checks.urls, recipe(tmp_path, f'url = "{url}"\n{version}')) == [message]
    own = f'version("1.0", sha256="{GOOD}", url="https://example.org/a-1.1.tgz")'
    assert said(checks.urls, recipe(tmp_path, own)) == [
        "the url of 1.0 does not contain its version"
    ]


def digests(found: Recipe) -> list[Problem]:
    known = {
        "a-1.0.tar.gz": Known(
            hashes={GOOD: Whose(upstream=True, note="upstream's")},
            refused={REFUSED: "the first that was published"},
            why="w",
            source="s",
        )
    }
    return list(checks.digests({"a-2.0.tar.gz": (GOOD,)}, known, found))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (f'version("1.0", sha256="{GOOD}")', ()),
        (f'version("2.0", sha256="{GOOD}")', ()),
        (f'version("3.0", sha256="{"e" * 64}")', ()),
        (f'version("main", commit="{"0" * 40}")', ()),
        ('version("1.0")', ("has no SHA-256", "64 hexadecimal digits")),
        (f'version("1.0", sha256="{"A" * 64}")', ("has no SHA-256",)),
        (f'version("1.0", sha256="{GOOD[:63]}")', ("has no SHA-256",)),
        ('version("main", commit="abc")', ("no full git commit",)),
        (
            f'version("1.0", sha256="{REFUSED}")',
            ("this hash is refused", "the first that was published"),
        ),
        (f'version("1.0", sha256="{"d" * 64}")', ("another hash in environments/policy",)),
        (f'version("2.0", sha256="{"d" * 64}")', ("another hash in the easyconfigs",)),
        (
            f'version("3.0", sha256="{GOOD}")\nversion("3.0", sha256="{GOOD}")',
            ("version 3.0 is declared twice",),
        ),
    ],
)
def test_hashes(tmp_path: Path, version: str, words: tuple[str, ...]) -> None:
    found = recipe(tmp_path, f'url = "https://example.org/a-0.9.tar.gz"\n{version}')
    problems = digests(found)
    text = "\n".join(line for problem in problems for line in problem.lines())
    assert bool(problems) == bool(words)
    assert all(word in text for word in words), text
    assert all(problem.where.rpartition(":")[2].isdigit() for problem in problems)


def test_what_is_downloaded_by_hand_may_have_no_hash_if_it_says_why(tmp_path: Path) -> None:
    by_hand = 'manual_download = True\nversion("1.0")'
    assert digests(recipe(tmp_path, by_hand))
    assert not digests(recipe(tmp_path, f"# licensed: each site signs for it\n{by_hand}"))
    assert not digests(recipe(tmp_path, f"# no hash: upstream has none\n{by_hand}"))
    assert digests(recipe(tmp_path, '# licensed: so it says\nversion("1.0")'))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    recipe(tmp_path, 'license("MIT")\nconflicts("+a", when="+b")')
    recipe(tmp_path, 'license("MIT")', name="other", cls="Wrong")
    with pytest.raises(InvalidInput) as caught:
        checks.check_recipes(tmp_path)
    said = str(caught.value)
    assert "my_pkg/package.py:7: conflicts('+a', when='+b') has no message" in said
    assert "Spack looks for the class Other in this folder" in said


def test_a_word_of_the_policy_that_the_recipe_lacks(tmp_path: Path) -> None:
    lacking = recipe(
        tmp_path,
        'variant("netmod", default="ofi", values=("ofi", "ucx-x"), description="N")',
        name="mvapich",
        cls="Mvapich",
    )
    text = "\n".join(line for one in unmet([lacking], load_policy()) for line in one.lines())
    assert "the policy leads to mvapich netmod=ucx, which its variant lacks" in text
    assert "nearest   ucx-x" in text
    assert "the recipe has no variant pmi" in text
    assert "because   fabrics.yaml slingshot-11, launchers.yaml srun-mvapich" in text
    assert "because   builds.yaml infiniband-embedded, launchers.yaml" in text
