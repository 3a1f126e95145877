"""Provenance: in the form that in-toto and SLSA ask for, and over every artefact."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from google.protobuf import json_format
from image_tree import put
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement

from mvstack.image import provenance
from mvstack.image.components import Component, Source
from mvstack.image.provenance import Build, Input
from mvstack.support.errors import Refused

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
STACK = [
    Component(
        "MPICH",
        "4.0.2",
        sources=(Source("mpich.tar.gz", "a" * 64, "Debian", False, "repacked", "https://x/m"),),
    ),
    Component("HPCC", "1.5.0", sources=(Source("h.tgz", "b" * 64, "x", True, "", "https://x/h"),)),
]
BUILD = Build(
    id="20261121T211500Z-3fa9c1",
    builder="https://ci.example.org/runners/7",
    versions={"packer": "1.6.6", "mvstack": "0.1"},
    parameters={"system": "qemu-debian12", "version": "2026.11.0"},
    repository="git+https://example.org/mvapich-stack",
    commit="c" * 40,
    modified=False,
    ours=[
        Input("ami-0123", "", "aws:ami:ami-0123"),
        Input("packages.txt", "d" * 64),
        Input("payload.tar", "e" * 64),
    ],
    others=[
        Input("efa.tar.gz", "f" * 64, "https://example.org/efa.tar.gz"),
        *provenance.inputs_of(STACK),
    ],
    started=datetime(2026, 11, 21, 22, 15, tzinfo=timezone(timedelta(hours=1))),
    finished=datetime(2026, 11, 21, 21, 30, tzinfo=UTC),
)


def test_it_is_what_in_toto_and_slsa_ask_for(tmp_path: Path) -> None:
    put(tmp_path, "disk.qcow2", "hello")
    put(tmp_path, "image.json", "{}")
    put(tmp_path, "SHA256SUMS", "old")
    provenance.write(provenance.provenance(tmp_path, BUILD), tmp_path)
    text = (tmp_path / "provenance.json").read_text()
    document = json.loads(text)
    parsed = json_format.Parse(text, statement_pb2.Statement())  # refuses what it does not know
    Statement.copy_from_pb(parsed).validate()
    assert document["subject"] == [{"name": "disk.qcow2", "digest": {"sha256": HELLO}}]
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    predicate = json_format.ParseDict(document["predicate"], provenance_pb2.Provenance())
    for one in predicate.build_definition.resolved_dependencies:
        ResourceDescriptor.copy_from_pb(one).validate()
    assert predicate.run_details.builder.id == BUILD.builder
    assert predicate.run_details.metadata.started_on.ToJsonString() == "2026-11-21T21:15:00Z"
    assert dict(predicate.build_definition.external_parameters) == {
        "system": "qemu-debian12",
        "version": "2026.11.0",
    }
    # written again, over itself, it is the same
    provenance.write(provenance.provenance(tmp_path, BUILD), tmp_path)
    assert (tmp_path / "provenance.json").read_text() == text


def test_every_input_is_named_with_its_hash_and_what_must_be_known_of_it(tmp_path: Path) -> None:
    put(tmp_path, "manifest.txt", "hello")
    build = replace(BUILD, modified=True)
    rows = provenance.provenance(tmp_path, build)["predicate"]["buildDefinition"]
    rows = rows["resolvedDependencies"]
    assert rows[0]["digest"] == {"gitCommit": "c" * 40}
    assert "no commit holds" in rows[0]["annotations"]["modified"]
    assert "annotations" not in provenance._dependencies(BUILD)[0]
    assert rows[1] == {"name": "ami-0123", "uri": "aws:ami:ami-0123"}
    named = {row["name"]: row for row in rows[1:]}
    assert named["HPCC 1.5.0: h.tgz"]["uri"] == "https://x/h"
    assert "uri" not in named["MPICH 4.0.2: mpich.tar.gz"]  # its bytes are not those at the URL
    remark = named["MPICH 4.0.2: mpich.tar.gz"]["annotations"]["remark"]
    assert remark == "not upstream's bytes; Debian"
    hashes = [row["digest"]["sha256"][0] for row in rows[2:]]
    assert hashes == ["d", "e", "b", "a", "f"]


def test_an_empty_folder_has_no_origin(tmp_path: Path) -> None:
    put(tmp_path, "image.json", "{}")
    with pytest.raises(Refused, match="no artefact"):
        provenance.provenance(tmp_path, BUILD)
