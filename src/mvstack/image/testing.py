"""Test a built image: start it as a machine of its own, look at it, run the checks in it.

Of a QEMU image only: a cloud's image is started in the cloud, where images/tests and `mvstack test`
do the same over ssh (docs/images.md). The disk is not touched: the machine writes to a layer.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mvstack.image import carry, tools, vm
from mvstack.image.extras import need
from mvstack.image.job import Job
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import ImagePlan, distribution_of
from mvstack.image.store import Version, work_folder
from mvstack.support.errors import CheckFailed, Missing, Problem, Refused
from mvstack.support.files import write_atomically
from mvstack.support.processes import Limits, TimedOut, follow

REPORT = "tests.json"
SILENCE = 1200.0  # seconds; the longest check takes two minutes in an emulated machine
_THERE = "/tmp/mvapich-stack-test"


def whole(version: Version) -> Path:
    """The disk of a version. Raises Missing without it, before what was signed is withdrawn."""
    disk = version.folder / "disk.qcow2"
    if not disk.is_file():
        raise Missing(
            Problem(
                f"the disk of {version.title} is not there",
                str(disk),
                todo="bring it back, or build the image again",
            )
        )
    return disk


def ready(title: str, image: ImagePlan) -> None:
    """Raise Refused for an image of a cloud, Missing without what a test here takes."""
    if image.cloud != "qemu":
        raise Refused(
            Problem(
                f"{title} is an image of {image.cloud}, and cannot be started here",
                todo="start it there; docs/images.md says how the same tests run over ssh",
            )
        )
    tools.need(tools.FOR_TEST, "starting an image")
    need("pytest", "testinfra")


def test(job: Job, report_to: Path) -> dict[str, Any]:
    """Start the image of ``job``, run all tests, write ``report_to``, and return it.

    Raises CheckFailed naming each test that failed; the report is written all the same. What
    :func:`ready` raises is not seen here.
    """
    version, image = job.version, job.image
    work = work_folder(version) / "test"
    work.mkdir(parents=True, exist_ok=True)
    key = vm.make_key(work)
    seed = vm.make_seed(work, key, f"test-{version.data['build_id']}", root=False)
    part = image.hardware
    # cloud-init's default user has the distribution's name
    user = distribution_of(image.os)
    guest = vm.Guest(user, key, seed, int(part["cores"]), int(part["memory_gb"]) * 1024)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        with job.step(
            "start", "the image, started as a machine of its own", work / "console.log"
        ) as s:
            machine = stack.enter_context(vm.started(whole(version), work, guest, s.note))
        started = time.monotonic() - began
        with job.step("testinfra", "tests of the machine", work / "testinfra.log") as step:
            sockets = stack.enter_context(tempfile.TemporaryDirectory(prefix="mvs-"))
            machine.ssh_config(work / "ssh_config", Path(sockets))
            inside = _testinfra(job, work, step.note)
        with job.step(
            "reframe", "the release's checks, in the image", work / "reframe.log"
        ) as step:
            checks = _reframe(machine, image.tree, work, step.note)
    report = {
        "image": image.name,
        "version": version.version,
        "where": f"QEMU, {vm.accelerator()}, {part['cores']} processors, {part['memory_gb']} GB",
        "seconds": {"start": round(started, 1), "all": round(time.monotonic() - began, 1)},
        "machine": inside,
        "checks": checks,
    }
    write_atomically(report_to, json.dumps(report, indent=1) + "\n")
    failed = [case for case in [*inside, *checks] if case["result"] not in ("pass", "skip")]
    if failed:
        raise CheckFailed(
            *(Problem(f"{case['name']}: {case['why']}"[:600], image.name) for case in failed),
            outcome=f"{len(failed)} of {len(inside) + len(checks)} tests failed; {version.title} "
            f"is no image to publish. Everything: {report_to}",
        )
    return report


def _testinfra(job: Job, work: Path, note: Callable[[str], None]) -> list[dict[str, Any]]:
    facts = work / "image.json"
    facts.write_text(job.files["image/image.json"])
    junit = work / "testinfra.xml"
    junit.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        str(TEMPLATES / "tests"),
        "-p",
        "no:cacheprovider",
    ]
    command += ["--hosts=ssh://image", f"--ssh-config={work / 'ssh_config'}", "-q", "--tb=short"]
    command += [f"--junitxml={junit}", f"--rootdir={TEMPLATES / 'tests'}", "-c", os.devnull, "-v"]
    environment = {**os.environ, "MVSTACK_IMAGE_FACTS": str(facts), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    status = _followed(command, environment, work / "testinfra.log", note)
    found = _cases(junit) if junit.is_file() and status in (0, 1) else []
    results = [case["result"] for case in found]
    # 1 is pytest's "tests failed"; what it says and its report must be the same
    if "pass" not in results or (status == 1) != ("fail" in results):
        raise CheckFailed(
            Problem(
                "the tests of the machine did not run to their end",
                str(work / "testinfra.log"),
                found=f"pytest ended with status {status}; {len(found)} results",
                todo="read the log named above",
            )
        )
    return found


def _followed(
    command: Sequence[str], env: Mapping[str, str], log: Path, note: Callable[[str], None]
) -> int:
    """Run it with its output in ``log``; its status. Raises CheckFailed when it falls silent."""
    with log.open("w", buffering=1) as stream:

        def line(text: str) -> None:
            stream.write(text + "\n")
            note(text.strip())

        try:
            return follow(command, env, line=line, limits=Limits(silence=SILENCE))
        except TimedOut:
            raise CheckFailed(
                Problem(
                    f"a test said nothing for {SILENCE / 60:.0f} minutes, and was ended",
                    str(log),
                    todo="see what it did last: a collective that hangs looks like this",
                )
            ) from None


def _cases(junit: Path) -> list[dict[str, Any]]:
    """The cases of a JUnit file, none of one that is not whole."""
    found = []
    try:
        root = ElementTree.parse(junit).getroot()
    except ElementTree.ParseError:
        return []
    for case in root.iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        result = "fail" if bad else "skip" if skipped is not None else "pass"
        told = bad[0] if bad else skipped
        found.append(
            {
                "name": f"{case.get('classname', '')}::{case.get('name', '')}",
                "result": result,
                "why": " ".join((told.get("message") or "").split())[:500]
                if told is not None
                else "",
            }
        )
    return found


def _reframe(
    machine: vm.Machine, tree: str, work: Path, note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The release's checks, run in the machine by its own Python; one row a check."""
    wanted = carry.python_version()
    there = machine.run("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
    if (found := there.text.strip()) != wanted:
        why = f"the image has Python {found or 'none'}, and ReFrame here is for {wanted}"
        return [{"name": "ReFrame", "result": "skip", "why": why}]
    archive = work / "carry.tar"
    carry.archive(archive)
    note("bringing ReFrame along")
    unpack = f"mkdir -p {_THERE} && tar -C {_THERE} -xf -"
    done = machine.run(unpack, data=archive.read_bytes())
    archive.unlink()
    if not done.ok:
        said = done.errors.strip()[-300:]
        raise CheckFailed(Problem("ReFrame could not be copied to the machine", found=said))
    # emulated processors say nothing of speed, and ranks that wait by spinning take minutes there
    tag = "" if vm.accelerator() == "kvm" else "correct"
    line = (
        f"cd {_THERE} && PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 "
        f"PYTHONPATH={_THERE}/site:{_THERE}/repository/src "
        f"bin/python3 -P -m mvstack.image.inside {tree} {_THERE}/out {tag}"
    )
    status = _followed(machine.ssh(line), os.environ, work / "reframe.log", note)
    brought = machine.run(f"cat {_THERE}/out/results.json")
    try:
        results = json.loads(brought.text)
    except ValueError:
        raise CheckFailed(
            Problem("the release's checks did not run in the image", str(work / "reframe.log"))
        ) from None
    rows = [
        {
            "name": f"{case['check']} with {case['mpi']}",
            "result": case["result"],
            "why": str(case.get("why") or ""),
        }
        for case in results["cases"]
    ]
    if not rows or (status and all(row["result"] in ("pass", "skip") for row in rows)):
        raise CheckFailed(
            Problem(
                "ReFrame's end in the image does not fit its report",
                str(work / "reframe.log"),
                found=f"status {status}, {len(rows)} checks",
            )
        )
    if tag:
        why = "emulated: its figures would say nothing"
        rows.append({"name": "benchmarks and HPCC", "result": "skip", "why": why})
    return rows


def passed(version: Version) -> dict[str, int]:
    """How many tests passed, failed and were skipped; empty when there was no test."""
    try:
        report = json.loads((version.folder / REPORT).read_text())
    except (OSError, ValueError):
        return {}
    return counted(report)


def counted(report: dict[str, Any]) -> dict[str, int]:
    """How many tests of a report passed, failed and were skipped."""
    counts = {"pass": 0, "fail": 0, "skip": 0}
    for case in [*report["machine"], *report["checks"]]:
        counts["fail" if case["result"] not in counts else case["result"]] += 1
    return counts
