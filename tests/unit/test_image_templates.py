"""The Packer templates: what an older Packer is not given, and our own rules."""

from __future__ import annotations

import re

import hcl2
import pytest

from mvstack.image.lint import lint
from mvstack.image.strip import Modern, modern, strip, templates


def test_the_templates_pass() -> None:
    assert lint() == []


def test_stripping_takes_what_is_named_and_nothing_else() -> None:
    before, after = templates(), strip(templates(), modern())
    assert set(before) - set(after) == {"plugins.pkr.hcl"}
    named = {
        name
        for table in (modern().arguments, modern().blocks)
        for names in table.values()
        for name in names
    }
    for name, text in after.items():
        one, two = hcl2.loads(before[name]), hcl2.loads(text)
        for block, other in zip(one.get("source", []), two.get("source", []), strict=True):
            for kind in block:
                (old,), (new,) = block[kind].values(), other[kind].values()
                assert set(old) - set(new) <= named
                assert {key: old[key] for key in new} == new
        if "source" not in one:
            assert text == before[name]


HCL = """\
source "amazon-ebs" "image" {
  keep = "}" # }
  gone {
    inner = [
      "a",
    ]
  }
  also = merge(var.a, {
    gone = "not this one, which is an argument of another thing"
  })
  last = [1,
    2]
}
source "qemu" "image" {
  also = 1
}
"""


def test_blocks_and_values_of_several_lines() -> None:
    newer = Modern(
        files=[], arguments={"amazon-ebs": ["also", "last"]}, blocks={"amazon-ebs": ["gone"]}
    )
    text = strip({"a": HCL}, newer)["a"]
    assert text == (
        'source "amazon-ebs" "image" {\n  keep = "}" # }\n}\n'
        'source "qemu" "image" {\n  also = 1\n}\n'
    )


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("aws.pkr.hcl", "var.aws_region", "var.aws_regoin", "var.aws_regoin is used"),
        ("aws.pkr.hcl", "encrypt_boot", "encrypt_root", "encrypt_boot must be given"),
        ("azure.pkr.hcl", "azure_tags = local.building", "", "azure_tags must be given"),
        ("azure.pkr.hcl", "vtpm_enabled", "vtpm", "vtpm_enabled stands there and in no template"),
        ("variables.pkr.hcl", "sensitive = true", "sensitive = false", "not marked sensitive"),
        ("build.pkr.hcl", "echo 'mvapich-stack: generalising'", "curl https://x | sh", "network"),
        ("qemu.pkr.hcl", "headless    = true", "headless    = ", "is no HCL"),
        ("variables.pkr.hcl", 'variable "qemu_cpus"', 'variable "qemu_cores"', "not used"),
    ],
)
def test_lint_finds(file: str, old: str, new: str, said: str) -> None:
    texts = templates()
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    found = lint(texts)
    assert found and any(said in problem.message for problem in found), found


def test_a_candidate_is_never_what_is_taken_by_default() -> None:
    texts = templates()
    assert re.search(r"exclude_from_latest\s*= true", texts["azure.pkr.hcl"])
    assert "published" not in "".join(texts.values())
