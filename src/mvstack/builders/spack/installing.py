"""Install what is pending of an environment: each package a step of progress and a record."""

import contextlib
import gzip
import re
import shutil
import socket
import time
from collections.abc import Container
from pathlib import Path

from mvstack.builders.base import Row, Run
from mvstack.builders.following import lines_of, objects_in
from mvstack.builders.spack import sources
from mvstack.builders.spack.lock import Environment
from mvstack.builders.spack.modules import Part
from mvstack.builders.spack.resolve import installed, pending
from mvstack.builders.spack.runner import Package, Said
from mvstack.model.spack_lock import Lock, Node
from mvstack.support.errors import BuildFailed, Problem
from mvstack.support.progress import Step
from mvstack.tree.records import Records

LAST = 4  # lines of a failed build that an error quotes
# Lines of a build log that say what went wrong, whatever the build system.
_TELLING = re.compile(r"\berror\b|\bError\b|\*\*\*|undefined reference|No such file|cannot find")


def build(
    environment: Environment,
    todo: list[Node],
    parts: dict[str, Part],
    run: Run,
    offered: Container[str] = (),
) -> list[Row]:
    """Fetch the sources of ``todo`` and install it; a row for each package.

    What is ``offered`` (hashes) comes from a cache and needs no source; ``parts`` are the parts
    of the plan by hash. Where the caches alone are to be used, nothing is compiled.
    """
    if run.caches and run.caches.only:
        return _Installing(environment, todo, parts, {}, run).install("--use-buildcache", "only")
    fetched = _fetched(environment, [one.hash for one in todo if one.hash not in offered], run)
    return _Installing(environment, todo, parts, fetched, run).install()


def build_each(
    environment: Environment, order: list[Node], answer: Lock, run: Run, offered: Container[str]
) -> list[Row]:
    """Install each of ``order`` alone, and what it needs from caches; a row for each package.

    What is ``offered`` (hashes) comes from a cache, the others of ``order`` are built; nothing
    else is.
    """
    to_build = [node.hash for node in order if node.hash not in offered]
    fetched = _fetched(environment, to_build, run) if to_build else {}
    rows: list[Row] = []
    for node in order:
        there = installed(environment.spack.isolated.store)
        # [] where another one has brought it along
        if needed := pending(answer, there, offered, [node.hash]):
            how = "only" if node.hash in offered else "never"
            words = ("--use-buildcache", f"package:{how},dependencies:only", f"/{node.hash}")
            rows += _Installing(environment, needed, {}, fetched, run).install(*words)
    return rows


def _fetched(environment: Environment, hashes: list[str], run: Run) -> dict[str, list[Row]]:
    """Bring the sources of what is to be built into the mirror."""
    records = Records(Path(environment.plan.tree))
    return sources.fetch(environment.sources(hashes), run.fetcher.fetch, records, run.progress)


class _Installing:
    """One run of ``spack install``."""

    def __init__(
        self,
        environment: Environment,
        todo: list[Node],
        parts: dict[str, Part],
        fetched: dict[str, list[Row]],
        run: Run,
    ) -> None:
        self.spack, self.folder = environment.spack, environment.file.parent
        self.plan, self.progress = environment.plan, run.progress
        self.nodes = {node.hash: node for node in todo}
        self.parts, self.sources = parts, fetched
        self.records = Records(Path(self.plan.tree))
        self.rows: list[Row] = []
        self.said = Said(self._event)
        self._open = contextlib.ExitStack()
        self._step: Step | None = None
        self._package: Package | None = None
        self._began = ""

    def install(self, *more: str) -> list[Row]:
        """Run it to its end; the rows of what was built. Raises BuildFailed for what failed."""
        words = ("-e", str(self.folder), "install", *more)
        what = f"{len(self.nodes)} packages with Spack"
        with self.progress.step("install", what, log=self.spack.log("install")):
            try:
                if status := self.spack.status("install", words, self.said, tick=self._tick):
                    raise self._failure(status)
            except BaseException as error:
                self._close(error)
                raise
        shutil.rmtree(self.spack.isolated.stage, ignore_errors=True)
        return self.rows

    # --- while it runs -----------------------------------------------------------------------

    def _event(self, event: str, package: Package) -> None:
        node = self.nodes.get(package.hash)
        if node is None:
            return
        if event == "begin":
            failed = self._package is not None and not self._package.done
            self._close(BuildFailed() if failed else None)
            self._package = package
            self._began = time.strftime("%FT%TZ", time.gmtime())
            title = f"{node.name} {node.version}" + (f" ({package.count})" if package.count else "")
            self._step = self._open.enter_context(self.progress.step("package", title))
        elif event == "phase" and self._step:
            self._step.note(package.phase)
        elif event == "done":
            self._row(node, package, "built")
            self._close(None)

    def _tick(self) -> None:
        current = self.said.current
        if current and self._step and current.phase:
            # others' stages are left by who was killed
            count = objects_in(self.spack.isolated.stage.glob(f"*-{current.hash}"))
            self._step.note(f"{current.phase}, {count} objects" if count else current.phase)

    def _close(self, error: BaseException | None) -> None:
        """End the step of the package that was under way, as failed if ``error`` says so."""
        self._step = None
        with contextlib.suppress(BuildFailed, KeyboardInterrupt):
            self._open.__exit__(type(error) if error else None, error, None)

    def _row(self, node: Node, package: Package, result: str, log: str = "") -> None:
        part = self.parts.get(node.hash)
        own = part.build or part.package if part else None
        row: Row = {
            "package": getattr(own, "name", "") or getattr(own, "software", "") or node.name,
            "version": node.version,
            "module": own.module if own else "",
            "mpi": part.over if part else "",
            "spec": str(node),
            "hash": node.hash,
            "builder": "spack",
            "started": self._began,
            "host": socket.gethostname(),
            "cores": self.plan.cores,
            "log": log or str(self._installed_log(node)),
            "sources": self.sources.get(node.hash, []),
            "result": result,
            "seconds": round(package.seconds, 1),
            "steps": package.steps,
        }
        if package.cached:
            row["from"] = "binary cache"
        self.records.append("builds", row)
        if result == "built":
            self.rows.append(row)

    def _installed_log(self, node: Node) -> Path:
        """The build's log, unpacked from where Spack keeps it beside the package."""
        target = self.spack.logs / f"{node.name}-{node.version}-{node.hash[:7]}.log"
        prefix = installed(self.spack.isolated.store).get(node.hash, Path())
        with contextlib.suppress(OSError, EOFError):  # an unpacked binary may have none
            packed = (prefix / ".spack" / "spack-build-out.txt.gz").read_bytes()
            target.write_bytes(gzip.decompress(packed))
        return target

    # --- when it failed ----------------------------------------------------------------------

    def _failure(self, status: int) -> BuildFailed:
        """The error of a run that failed: which package, which phase, which log, its last words."""
        failed = [self.said.packages[key] for key in self.said.failed if key in self.said.packages]
        if not failed and self.said.current:
            failed = [self.said.current]
        problems = []
        for package in failed:
            node = self.nodes.get(package.hash)
            if node is None:
                continue
            own = self._keep_log(node)
            self._row(node, package, "failed", str(own))
            problems.append(
                Problem(
                    f"{node.name} {node.version} was not installed"
                    + (f": its phase {package.phase} failed" if package.phase else ""),
                    str(own),
                    found=" | ".join(_telling(own, self.said.errors)),
                    todo="read the log named above, correct the cause, and run the command again",
                )
            )
        if not problems:
            return self.spack.failure("install", status)
        return BuildFailed(
            *problems,
            outcome="What was installed before stays; no module of what failed can be loaded.",
        )

    def _keep_log(self, node: Node) -> Path:
        """A copy of the failed build's log, which the next try would overwrite."""
        target = self.spack.logs / f"{node.name}-{node.version}-{node.hash[:7]}.failed.log"
        told = (Path(log) for log in self.said.logs if node.hash in log)
        left = self.spack.isolated.stage.glob(f"*{node.hash}/spack-build-out.txt")
        for place in (*told, *left):
            with contextlib.suppress(OSError):
                shutil.copyfile(place, target)
                return target
        return self.spack.log("install")


def _telling(log: Path, errors: list[str]) -> list[str]:
    """The lines of a log that a person should see first."""
    lines = lines_of(log)
    telling = [line for line in lines if _TELLING.search(line)]
    chosen = [*dict.fromkeys(errors[:1]), *(telling[:2] + telling[-LAST:]), *lines[-2:]]
    return [line[:300] for line in dict.fromkeys(chosen)]
