"""A site's pipeline builds, starts, tests, signs and publishes an image: for real but for GitLab.

A commit of mvapich-stack changes a kernel setting of images and nothing else, so the pipeline has
the jobs of images alone. The release is the one that is installed for the tests of images.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from gitlab import pipelines
from gitlab.sites import World, edited, world

from images import release
from mvstack.image.sign import verify

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SETTINGS = """\
systems:
  - system: qemu-debian12
    partitions: [mpich]
    staging: {shared}/s
    images: {{folder: {shared}/i, to: {shared}/published, vulnerabilities: unknown}}
trust: [keys/site.asc]
variables: {{MVSTACK_ROOT: {root}}}
"""
CHANGED = {"environments/policy/images.yaml": {'value: "65535"': 'value: "32768"'}}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if lacking := [one for one in ("packer", "qemu-system-x86_64") if not shutil.which(one)]:
        pytest.skip(f"skipped: not installed: {', '.join(lacking)}")
    with world(tmp_path_factory.mktemp("site")) as made:
        yield made


def test_an_image_goes_from_its_change_to_where_it_is_published(here: World) -> None:
    settings = SETTINGS.format(shared=here.shared, root=release.ROOT)
    here.site.commit("Make images", {"mvstack-ci.yaml": settings})
    here.site.push()
    changed = here.stack.commit("Let fewer connections wait", edited(here.stack, CHANGED))
    here.stack.push()
    here.site.commit("Take it", {".gitlab-ci.yml": here.including(changed)})
    result = pipelines.run(
        here.site,
        here.variables(),
        source="push",
        protected=True,
        file_variables={"MVSTACK_SIGNING_KEY": here.secret},
        manual_jobs=["image:build", "image:publish"],
        timeout=3400,
    )
    assert result.ok, "\n".join(result.problems)
    jobs = [job.name for job in result.jobs if job.pipeline]
    assert set(jobs) == {"image:valid", "image:build", "image:test", "image:publish"}
    (published,) = (here.shared / "published" / "qemu-debian12-mpich").iterdir()
    assert verify(Path(published)).files, "signed by the site's key, and whole"
