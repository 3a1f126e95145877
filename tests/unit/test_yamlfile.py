"""YAML files keep the line of everything, whatever a person writes into them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.model import yamlfile
from mvstack.model.libyaml import LOADER, composed
from mvstack.model.yamlfile import parse_yaml, read_yaml
from mvstack.support.errors import InvalidInput

HERE = Path("some.yaml")


def test_lines_of_keys_items_and_nested_values():
    file = parse_yaml("a: 1\nb:\n  - x\n  - {c: 2}\n", HERE)
    assert file.data == {"a": 1, "b": ["x", {"c": 2}]}
    assert [file.line(p) for p in (("a",), ("b",), ("b", 0), ("b", 1, "c"))] == [1, 2, 3, 4]
    assert file.line(("b", 1, "missing")) == 4


def test_yaml_12_keeps_words_that_11_takes_for_truth():
    assert parse_yaml("a: no\nb: on\nc: 4.10\n", HERE).data == {"a": "no", "b": "on", "c": 4.10}


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\na: 2\n", 2), ("a: [1\nb: 2\n", 2), ("a: b: c\n", 1), ("\tx: 1\n", 1)],
)
def test_what_is_not_yaml_is_named_with_its_line(text, line):
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, HERE)
    assert caught.value.problems[0].where == f"some.yaml:{line}"
    assert caught.value.exit_code == 3


def test_what_never_ends_is_an_error_of_the_file():
    with pytest.raises(InvalidInput, match=r"some.yaml:1: not valid YAML: nested too deeply"):
        parse_yaml("a: " + "[" * 20_000, HERE)


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (BOMB, 4, "its aliases repeat more than 1,000 values"),
        ("a: 1\nb: &b\n  c: *b\n", 3, "an anchor that holds its own alias"),
        ("a: 1\nb: !!python/object [x]\n", 2, "the tag python/object is not used here"),
        ("a: 1\nb: !mine x\n", 2, "the tag !mine is not used here"),
        ("a: 1\nb: !<str> x\n", 2, "the tag str is not used here"),
        ("!<x:merge> a: {b: 1}\n", 1, "the tag x:merge is not used here"),
        ("a: 1\nb: " + "9" * 5000, 2, "4300 digits"),
        ("a: 1\n? [b]\n: 2\n", 2, "a key that is a list or a mapping"),
        ("a: 2026-13-01\n", 1, "month must be in 1..12"),
    ],
)
def test_tricks_of_yaml_are_refused_at_once_with_their_line(text, line, says):
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, HERE)
    (problem,) = caught.value.problems
    assert problem.where == f"some.yaml:{line}" and says in problem.message


def test_aliases_and_merges_that_stay_small_are_read():
    text = "x: &x {a: 1, b: [2]}\ny: {<<: *x, a: 3}\nz: *x\n"
    both = {"a": 1, "b": [2]}
    assert parse_yaml(text, HERE).data == {"x": both, "y": {**both, "a": 3}, "z": both}


def test_a_file_that_is_no_text_or_not_there(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"a: \xff\n")
    for name in ("x.yaml", "none.yaml"):
        with pytest.raises(InvalidInput):
            read_yaml(tmp_path / name)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_never_a_traceback(text):
    try:
        parse_yaml(text, HERE)
    except InvalidInput as error:
        assert error.problems[0].where.startswith("some.yaml:")


PIECES = (
    *("a", "b: ", "- ", "- - ", "? ", ": ", ",", "[", "]", "{", "}", "&x ", "*x", "<<: "),
    *("!t ", "!!str ", "%YAML 1.1\n", "---\n", "...\n", " # c", "=", "@", "\u00e9", "\U0001f600"),
    *("\n", "\n  ", "\n    ", "\r", "\r\n", "\t", "\x85", "\u2028", "|", ">", "|-\n  x", ">\n  y"),
    *('"', "'", "\\", "no", "on", "~", "null", "TRUE", "1", "0o7", "0x1f", "012", "1e3", ".inf"),
    *("&x: ", "*x:", '"a":b', "# c\n", "|\n \n", "?]"),
    *(".5", "1_000", "1:30", "2026-01-01", "k: {a: 1}\n", "c:\n  - 1\n"),
)


def outcome(text):
    """What is read of ``text``, or what is said."""
    try:
        file = parse_yaml.__wrapped__(text, HERE)
    except InvalidInput as error:
        return [(one.message, one.where, one.todo) for one in error.problems]
    return repr(file.data), file.lines  # 1, 1.0 and True are equal


# What libyaml alone takes, or takes otherwise.
ODD = (
    *("&x: a\n", "&x:y a\n", "[&x a, *x: b]", "- &x a\n- *x:\n", "a: &x?a] y\n"),  # anchors
    *("|\n# c\n", " >- \n# c\n", "--- |\n# c\n", "---\n&x |+\n# c\n"),  # comments
    *("a: |\n \n  x\n", "a: > # c\n  \n\n    x\n", "- |\n \n\n  x\n"),  # empty lines
    *('["a":b]', '["a" :b]', "[[a]:b]", "[{a}:b]", "[&x a, *x :b]"),  # keys
    *("[?]\n]", "[a, ? ]]", "[\n?\n# c\n]]", "{?\n}"),  # a bracket is skipped, the line another
    *("!", "- 1\n...\n...", "b\t", "\x85- ", "\u2028- "),  # tags, ends of files and of lines
)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_libyaml_reads_what_the_parser_in_python_reads(text):
    same_from_both(text)


@pytest.mark.parametrize("text", ODD)
def test_what_libyaml_takes_otherwise_is_read_in_python(text):
    same_from_both(text)


def same_from_both(text):
    read = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yamlfile, "composed", lambda text: None)
        assert read == outcome(text)


@pytest.mark.skipif(not LOADER, reason="this PyYAML was built without libyaml")
def test_libyaml_reads_our_files():
    systems = Path(__file__).parents[2] / "environments" / "systems"
    left = [path.name for path in systems.glob("*.yaml") if not composed(path.read_text())]
    assert left == []


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text("xyz", min_size=1), values))
def test_what_is_written_is_read_back_with_a_line_for_every_place(data):
    import io

    from ruamel.yaml import YAML

    out = io.StringIO()
    YAML().dump(data, out)
    file = parse_yaml(out.getvalue(), HERE)
    assert (file.data or {}) == data

    def places(node, at=()):
        if isinstance(node, dict):
            for key, value in node.items():
                yield (*at, key)
                yield from places(value, (*at, key))
        elif isinstance(node, list):
            for number, value in enumerate(node):
                yield (*at, number)
                yield from places(value, (*at, number))

    last = out.getvalue().count("\n") + 1
    assert all(1 <= file.lines[place] <= last for place in places(data))


@pytest.mark.parametrize(
    ("text", "todo"),
    [
        ("a: 1\na: 2\n", "the other is on line 1"),
        ("\tx: 1\n", "spaces, not tabs"),
        ("a: [", "close"),
    ],
)
def test_what_is_not_yaml_says_what_to_do(text, todo):
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, HERE)
    assert todo in caught.value.problems[0].todo


def test_bytes_that_are_not_text_are_named_with_their_line(tmp_path):
    path = tmp_path / "latin1.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(InvalidInput) as caught:
        read_yaml(path)
    assert caught.value.problems[0].where.endswith("latin1.yaml:2")


def test_a_file_too_large_to_be_anybodys_is_refused_before_it_is_read():
    with pytest.raises(InvalidInput) as caught:
        parse_yaml("# nothing\n" * 200_000, HERE)
    (problem,) = caught.value.problems
    assert (problem.found, problem.allowed) == ("2,000,000 characters", "at most 1,048,576")
