"""What `mvstack cluster render` writes, read by the tools that it is for.

Both come from PyPI into an environment of their own (ParallelCluster brings 300 MB). Nothing is
started: ParallelCluster's schema needs no account, and Bicep's own compiler is on no index.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mvstack.image.cluster import Place, cluster_files, make_cluster
from mvstack.image.flow import Asked

PACKAGES = ("aws-parallelcluster==3.16.1", "tree-sitter==0.26.1", "tree-sitter-bicep==1.1.0")
AWS = ["aws-c6i/hpc", "aws-hpc6a/hpc", "aws-hpc7a/hpc", "aws-p5/gpu"]
AZURE = ["azure-hbv3/hpc", "azure-hbv4/hpc", "azure-ndv5/gpu"]
GALLERY = "/subscriptions/0/resourceGroups/g/providers/Microsoft.Compute/galleries/g/images/i"
READ_AWS = """
import sys, yaml
from pcluster.schemas.cluster_schema import ClusterSchema
from pcluster.schemas.imagebuilder_schema import ImageBuilderSchema
cluster = yaml.safe_load(open("cluster.yaml"))
cluster["Image"]["CustomAmi"] = "ami-0123456789abcdef0"
found = ClusterSchema(cluster_name="test").load(cluster)
ImageBuilderSchema().load(yaml.safe_load(open("image.yaml")))
(queue,) = found.scheduling.queues
(nodes,) = queue.compute_resources
print(nodes.max_count, nodes.efa.enabled, queue.networking.placement_group.enabled)
"""
READ_BICEP = """
import tree_sitter, tree_sitter_bicep
language = tree_sitter.Language(tree_sitter_bicep.language())
tree = tree_sitter.Parser(language).parse(open("main.bicep", "rb").read())
resources = [one for one in tree.root_node.children if one.type == "resource_declaration"]
print(tree.root_node.has_error, len(resources))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that has both packages; MVSTACK_TEST_CLUSTER_TOOLS is one that is there."""
    if there := os.environ.get("MVSTACK_TEST_CLUSTER_TOOLS"):
        return Path(there) / "bin" / "python"
    folder = tmp_path_factory.mktemp("tools") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    words = [folder / "bin" / "pip", "--disable-pip-version-check", "-q", "install", *PACKAGES]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"skipped: unreachable: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin" / "python"


def written(name: str, place: Place, folder: Path) -> Path:
    _, image = Asked(name).plan("cluster")
    for file, text in cluster_files(make_cluster(name, image, 4, place)).items():
        (folder / file).write_text(text)
    return folder


def ask(python: Path, program: str, folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-2"}
    done = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, cwd=folder, env=environment
    )
    return done.returncode, done.stdout.strip() or done.stderr.strip()[-500:]


@pytest.mark.parametrize("name", AWS)
def test_parallelcluster_takes_its_files(name: str, python: Path, tmp_path: Path) -> None:
    place = Place("ami-0123456789abcdef0", "us-east-2", "subnet-0123456789abcdef0", "mine")
    folder = written(name, place, tmp_path)
    assert ask(python, READ_AWS, folder) == (0, "4 True True")
    # it is a look: a word that ParallelCluster does not know is refused
    file = folder / "cluster.yaml"
    file.write_text(file.read_text().replace("MaxCount", "MaxNodes"))
    code, said = ask(python, READ_AWS, folder)
    assert code == 1
    assert "MaxNodes" in said


@pytest.mark.parametrize("name", AZURE)
def test_bicep_parses(name: str, python: Path, tmp_path: Path) -> None:
    folder = written(name, Place(f"{GALLERY}/versions/2026.11.0"), tmp_path)
    assert ask(python, READ_BICEP, folder) == (0, "False 9")
    file = folder / "main.bicep"
    file.write_text(file.read_text().replace("properties: {", "properties {", 1))
    assert ask(python, READ_BICEP, folder)[1].startswith("True")
