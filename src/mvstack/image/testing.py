"""Test a built image: start it as a machine of its own, look at it, run the checks in it.

An image for QEMU is started here; its disk is not touched, the machine writes to a layer. Of a
cloud's image somebody starts a machine there (docs/images.md), and names it.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mvstack.image import carry, tools, vm
from mvstack.image.extras import need
from mvstack.image.job import Job
from mvstack.image.nodes import THERE, followed, smoke
from mvstack.image.packer import TEMPLATES
from mvstack.image.plan import ImagePlan, distribution_of
from mvstack.image.store import Version, work_folder
from mvstack.image.vm import Machine
from mvstack.support.errors import CheckFailed, Missing, Problem, Refused
from mvstack.support.files import write_atomically

REPORT = "tests.json"


def whole(version: Version) -> Path:
    """The disk of a version. Raises Missing without it, before what was signed is withdrawn."""
    disk = version.folder / "disk.qcow2"
    if not disk.is_file():
        raise Missing(
            f"the disk of {version.title} is not there",
            str(disk),
            todo="bring it back, or build the image again",
        )
    return disk


def ready(title: str, image: ImagePlan, there: Sequence[Machine] = ()) -> None:
    """Raise Refused for a cloud's image of which no machine is named, Missing without the tools."""
    if image.cloud == "qemu":
        if there:
            raise Refused(
                "an image for QEMU is started here",
                found=there[0].name,
                todo="leave --host out",
            )
        tools.need(tools.FOR_TEST, "starting an image")
    elif not there:
        raise Refused(
            f"{title} is an image of {image.cloud}, and cannot be started here",
            todo=f"mvstack image boot-test {image.system}/{image.partition}; or start "
            f"{image.machine} from it, and name it: --host NAME (docs/images.md)",
        )
    else:
        tools.need(("ssh",), "testing a machine")
    need("pytest", "testinfra")


def test(job: Job, report_to: Path, there: Sequence[Machine] = ()) -> dict[str, Any]:
    """Test the image of ``job`` as a machine, write ``report_to``, and return it.

    The machine is the first of ``there``, or is started here. It is looked at as it first came up,
    started once more, and then runs MPI, at last among all of ``there``. Raises Refused for a
    machine of another image, BuildFailed for one that does not come up, and CheckFailed naming each
    test that failed; then the report is written all the same. What :func:`ready` raises is not seen
    here.
    """
    version, image = job.version, job.image
    work = work_folder(version) / "test"
    work.mkdir(parents=True, exist_ok=True)
    part = image.hardware
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        console = work / "console.log"
        with job.step("start", "the image, started as a machine of its own", console) as step:
            machines = there or [
                stack.enter_context(vm.started(whole(version), work, _guest(job, work), step.note))
            ]
            for one in machines:
                one.reach(step.note)
                _is_of(one, version)
            machine = machines[0]
        started = time.monotonic() - began
        with job.step("testinfra", "tests of the machine", work / "testinfra.log") as step:
            inside = _testinfra(job, machine, work, step.note)
        with job.step("reboot", "the machine, started once more", console) as step:
            machine.reboot(step.note)
            inside.append(_up(machine))
        with job.step("reframe", "MPI, in the image", work / "reframe.log") as step:
            if _reframe_can(machine, image):
                checks = _reframe(machine, image.tree, work, step.note)
            else:
                checks = [smoke(job, [machine], work, step.note)]
        if len(machines) > 1:
            with job.step(
                "nodes", f"MPI among {len(machines)} machines", work / "nodes.log"
            ) as step:
                checks.append(smoke(job, machines, work, step.note))
    emulated = f"QEMU, {vm.accelerator()}, {part['cores']} processors, {part['memory_gb']} GB"
    report = {
        "image": image.name,
        "version": version.version,
        "where": f"{image.cloud}, {', '.join(one.name for one in there)}" if there else emulated,
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


def _guest(job: Job, work: Path) -> vm.Guest:
    key = vm.make_key(work)
    seed = vm.make_seed(work, key, f"test-{job.version.data['build_id']}", root=False)
    part = job.image.hardware
    # cloud-init's default user has the distribution's name
    user = distribution_of(job.image.os)
    return vm.Guest(user, key, seed, int(part["cores"]), int(part["memory_gb"]) * 1024)


def _is_of(machine: Machine, version: Version) -> None:
    """Raise Refused for a machine that was not started from this very version."""
    text = machine.run("cat /etc/mvapich-stack/image.json").text
    names = ("image", "version", "release_sha256")
    wanted = {name: version.data.get(name) for name in names}
    try:
        found = {name: json.loads(text).get(name) for name in names}
    except ValueError:
        found = {}
    if found != wanted:
        raise Refused(
            f"this machine was not started from {version.title}",
            machine.where,
            found=f"/etc/mvapich-stack/image.json: {text.strip()[:300] or 'not there'}",
            allowed=json.dumps(wanted),
            todo="start one from that version, and name it",
        )


def _up(machine: Machine) -> dict[str, Any]:
    """Whether all units of a machine that was started once more are well."""
    done = machine.run("systemctl is-system-running --wait; systemctl --failed --no-legend --plain")
    state, _, failed = done.text.strip().partition("\n")
    well = state == "running" and not failed
    why = "" if well else " ".join(done.said.split())[:300] or "no answer"
    return {"name": "second start", "result": "pass" if well else "fail", "why": why}


def _reframe_can(machine: Machine, image: ImagePlan) -> bool:
    """Whether the release's checks can run there: by its Python, and without a cluster's Slurm."""
    line = "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"
    slurm = any(" srun " in f" {row['launch']} " for row in image.launch)
    return not slurm and machine.run(line).text.strip() == carry.python_version()


def _testinfra(
    job: Job, machine: Machine, work: Path, note: Callable[[str], None]
) -> list[dict[str, Any]]:
    facts = work / "image.json"
    facts.write_text(job.files["image/image.json"])
    junit = work / "testinfra.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "pytest", str(TEMPLATES / "tests")]
    command += ["-p", "no:cacheprovider"]
    command += [f"--hosts=ssh://{machine.name}", "-q", "--tb=short"]
    command += [f"--ssh-config={machine.config}"] if machine.config else []
    command += [f"--junitxml={junit}", f"--rootdir={TEMPLATES / 'tests'}", "-c", os.devnull, "-v"]
    environment = {**os.environ, "MVSTACK_IMAGE_FACTS": str(facts), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    status = followed(command, environment, work / "testinfra.log", note)
    found = _cases(junit) if junit.is_file() and status in (0, 1) else []
    results = [case["result"] for case in found]
    # 1 is pytest's "tests failed"; what it says and its report must be the same
    if "pass" not in results or (status == 1) != ("fail" in results):
        raise CheckFailed(
            "the tests of the machine did not run to their end",
            str(work / "testinfra.log"),
            found=f"pytest ended with status {status}; {len(found)} results",
            todo="read the log named above",
        )
    return found


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
    machine: Machine, tree: str, work: Path, note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The release's checks, run in the machine by its own Python; one row a check."""
    archive = work / "carry.tar"
    carry.archive(archive)
    note("bringing ReFrame along")
    unpack = f"mkdir -p {THERE} && tar -C {THERE} -xf -"
    done = machine.run(unpack, data=archive.read_bytes())
    archive.unlink()
    if not done.ok:
        said = done.errors.strip()[-300:]
        raise CheckFailed("ReFrame could not be copied to the machine", found=said)
    # emulated processors say nothing of speed, and ranks that wait by spinning take minutes there
    tag = "" if vm.accelerator() == "kvm" else "correct"
    line = (
        f"cd {THERE} && PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 "
        f"PYTHONPATH={THERE}/site:{THERE}/repository/src "
        f"bin/python3 -P -m mvstack.image.inside {tree} {THERE}/out {tag}"
    )
    status = followed(machine.ssh(line), os.environ, work / "reframe.log", note)
    brought = machine.run(f"cat {THERE}/out/results.json")
    try:
        results = json.loads(brought.text)
    except ValueError:
        raise CheckFailed(
            "the release's checks did not run in the image", str(work / "reframe.log")
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
            "ReFrame's end in the image does not fit its report",
            str(work / "reframe.log"),
            found=f"status {status}, {len(rows)} checks",
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
    counts = {"pass": 0, "fail": 0, "skip": 0}
    for case in [*report["machine"], *report["checks"]]:
        counts["fail" if case["result"] not in counts else case["result"]] += 1
    return counts
