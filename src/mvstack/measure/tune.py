"""Search what an MPI build is faster with: measured, checked by value, confirmed, or rejected.

Every candidate is a set of variables, measured in turns with the build as it is. What the search
finds best is confirmed with other sizes and ranks, then without each of its variables.
"""

import contextlib
import itertools
import json
import runpy
import sys
import time
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mvstack.measure import statistics
from mvstack.measure.bench import OPERATIONS, Bench, Wrong
from mvstack.measure.compare import Comparison, Over
from mvstack.measure.results import drawn_ratios
from mvstack.measure.statistics import LEAST, Array, Interval, decide, interval
from mvstack.model.tuning import Tunable, Tuning, table
from mvstack.plan.choose import Facts, holds
from mvstack.support import hashes
from mvstack.support.errors import CheckFailed, Missing, Refused
from mvstack.support.progress import Progress, Step
from mvstack.support.units import duration
from mvstack.test.run import CHECKS

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

SEARCH = 0.5  # the part of the budget that the search may take; the rest confirms
PLAIN = "plain"
TOP = 3  # candidates that are confirmed
REPEATED = 30
CROWD = 3072  # bytes of the largest message where there are more ranks than cores
SAYS = {"MPIR_CVAR_DEBUG_SUMMARY": "1", "UCX_LOG_LEVEL": "info"}  # what carries the messages
FABRIC = runpy.run_path(str(CHECKS / "fabric.py"))
SLOW = "it did not end within"
VALUES = ("its results are wrong", "data arrived changed")  # how a reason of bench.py begins
Settings = dict[str, str]


def _words(trial: "Trial | FrozenTrial") -> str:
    """The settings of a trial as JSON: what it does not leave alone."""
    return json.dumps({name: value for name, value in sorted(trial.params.items()) if value})


def together(values: dict[str, float]) -> Settings:
    """Of each variable the value that gains most alone, of those that gain; ``values`` by words."""
    alone = [json.loads(x) for x in sorted(values, key=values.__getitem__) if values[x] > LEAST]
    return {name: one[name] for one in alone if len(one) == 1 for name in one}


def fault(failed: list[dict[str, Any]], of: str, than: str) -> str:
    """What is wrong ``of`` an MPI, among rows that failed; "" for what ends with ``than``, too."""
    ends = {row["op"] for row in failed if row["mpi"] == than}
    rows = [row for row in failed if row["mpi"] == of]
    rows = [row for row in rows if row["op"] not in ends or row["why"].startswith(VALUES)]
    return next((f"{row['op']}: {row['why']}" for row in rows), "")


@dataclass(frozen=True)
class Request:
    """What is tuned: operations on so many ranks, for the plan's ``row`` of the MPI build."""

    operations: list[str]
    ranks: int
    cores: int
    row: dict[str, Any]
    tuning: Tuning
    applications: tuple[str, ...] = ()

    @property
    def tunables(self) -> dict[str, Tunable]:
        """The variables that may be tried for it."""
        unknown = dict.fromkeys((one.name for one in fields(Facts) if one.default is MISSING), "")
        named = {one.name: self.row[one.name] for one in fields(Facts) if one.name in self.row}
        facts = Facts(**{**unknown, **named})
        return {one.variable: one for one in self.tuning.tuning if holds(one.when, facts)}


class Tuner:
    """One search, which keeps in ``folder`` what it measured, and goes on there."""

    def __init__(self, bench: Bench, request: Request, folder: Path, budget: float) -> None:
        self.request, self.folder, self.budget = request, folder, budget
        self.until = time.monotonic() + budget
        self.rejected: dict[str, dict[str, Any]] = {}  # by settings: the last why is the surest
        self.tried, self.verified = 0, dict[tuple[Any, ...], list[dict[str, Any]]]()
        self.bench, ranks = self._with({}, bench), request.ranks
        began = time.monotonic()
        try:
            self.ways, self.nodes = FABRIC["ways"](self.bench.run("identity", ranks, more=SAYS))
            self.ways |= {*request.operations}
            cores = request.cores * self.nodes  # each node has as many as this one
            # the ranks of the confirmation beside those of the search
            self.other = 2 * ranks if 2 * ranks <= cores else ranks + 1
            self.right = {ranks: self._collectives(self.bench, ranks)}
            try:
                self.right[self.other] = self._collectives(self.bench, self.other)
            except Wrong as wrong:
                if str(wrong).startswith(("wrong", "hung")):
                    raise
                # srun starts no more ranks than the job has
                self.other = max(ranks // 2, 2)
                self.right[self.other] = self._collectives(self.bench, self.other)
            self._check(self.bench, ranks)
        except Wrong as wrong:
            todo = "run it where mvstack test passes: in a job, over two nodes if it has a fabric"
            what = f"the build as it is: {wrong}"
            raise CheckFailed(what, request.row["module"], todo=todo) from None
        self.crowded: bool = self.other > cores  # ranks that wait for a core take their time
        # of what takes so much longer than the build as it is, no more need be known
        limit = min(bench.limit, 15 + 2 * (time.monotonic() - began))
        self.bench = replace(self.bench, limit=limit)

    def _with(self, settings: Settings, bench: Bench | None = None) -> Bench:
        """The build with ``settings``, under the name of these."""
        bench = bench or self.bench
        words = " ".join(f"{name}={value}" for name, value in settings.items()) or PLAIN
        values = {name: str(table(value) or value) for name, value in settings.items()}
        environment = {**bench.mpi.environment, **values}
        mpi = replace(bench.mpi, name=words, environment=environment, ours=bool(settings))
        return replace(bench, mpi=mpi)

    def _collectives(self, bench: Bench, ranks: int) -> list[str]:
        """The collectives that bring the right values. Raises Wrong for one that does not."""
        said = bench.run("collectives", ranks, "few").splitlines()
        if bad := [line for line in said if line.startswith(("wrong", "hung"))]:
            raise Wrong(bad[0])
        return sorted(line for line in said if line.startswith("right "))

    def _check(self, bench: Bench, ranks: int) -> None:
        """Raise Wrong unless messages go as planned, and all collectives bring what they did."""
        said, believe = bench.run("identity", 2, more=SAYS), self.request.row["believe"]
        fault = FABRIC["fault"](said, self.request.row["device"], believe)
        if fault := fault or FABRIC["over_tcp"](said, believe):
            raise Wrong(str(fault))
        if self._collectives(bench, ranks) != self.right[ranks]:
            raise Wrong("collectives that are right without it are not with it")

    def gains(self, settings: Settings, than: Settings, phase: str) -> dict[str, Array]:
        """How many times as fast ``settings`` are as ``than``, by operation and ranks.

        Resamples of the geometric mean over sizes. Raises Wrong, and Over where time is up.
        """
        with_, without = self._with(settings), self._with(than)
        found, bound = {}, {} if phase == "search" else {"MVSTACK_BOUND": "far"}
        for ranks, names, sizes, rounds in self._runs(phase):
            if time.monotonic() > self.until:
                raise Over
            self._check(with_, ranks)
            benches = [
                replace(x, sizes=sizes, mpi=replace(x.mpi, environment=x.mpi.environment | bound))
                for x in (with_, without)
            ]
            comparison = Comparison(benches, names, ranks, rounds, self.until)
            rows, right = comparison.kept(self.folder / "runs"), (PLAIN, ranks, sizes)
            rows.rows += self.verified.get(right, [])  # once is enough for the build as it is
            comparison.run(rows, Progress(mode="quiet"))
            self.verified[right] = [x for x in rows.rows if x["kind"] == "verified"]
            failed = [row for row in rows.rows if row["kind"] == "failed"]
            if wrong := fault(failed, with_.mpi.name, without.mpi.name):
                raise Wrong(wrong)
            why = {row["op"]: row["why"] for row in failed}
            ran = {(x["op"], x["mpi"]): x["seconds"] for x in rows.rows if x["kind"] == "value"}
            for name, label in ((one, f"{one} on {with_.on(one, ranks)} ranks") for one in names):
                if name not in why:
                    ratio = drawn_ratios(rows.rows, name, with_.mpi.name, without.mpi.name)
                    found[label] = statistics.geometric_mean(ratio)
                elif why[name].startswith(SLOW) and (took := ran.get((name, with_.mpi.name))):
                    found[label] = np.full(statistics.DRAWS + 1, with_.limit / took)  # at least
        if not [one for one in found if one.partition(" ")[0] in OPERATIONS]:
            raise Wrong("nothing can be measured against it: every operation fails without it")
        return found

    def _runs(self, phase: str) -> Iterator[tuple[int, list[str], tuple[int, int], int]]:
        """Ranks, operations, sizes, rounds: the confirmation has others, and cores far apart."""
        names, ranks, (low, high) = self.request.operations, self.request.ranks, self.bench.sizes
        if phase == "search":
            yield ranks, names, (low, high), 3  # the median bears one slow round
            return
        low = 3 * max(low // 2, 2)  # no size is a power of two
        high = max(low, 3 * max(high // 4, 4))
        yield ranks, names, (low, high), 7
        if phase == "one" and self.crowded:
            return  # minutes for each variable; the whole set is measured there
        if many := [name for name in names if OPERATIONS[name].ranks != 2]:
            most, rounds = (min(high, CROWD), 3) if self.crowded else (high, 7)
            yield self.other, many, (low, max(low, most)), rounds
        if phase == "confirm" and self.request.applications:
            yield ranks, [*self.request.applications], (low, high), 7

    def whole(self, gains: dict[str, Array]) -> Interval:
        """Over the operations. Applications, and those on more ranks than cores, only veto."""
        left_out = f" on {self.other} ranks" if self.crowded else "none"
        known = {x: one for x, one in gains.items() if x.partition(" ")[0] in OPERATIONS}
        counted = [one for label, one in known.items() if not label.endswith(left_out)]
        return interval(statistics.geometric_mean(np.array(counted).T))

    def run(self, progress: Progress) -> dict[str, Any]:
        """What was found, as :class:`mvstack.model.tuning.Tuned` has it. Raises CheckFailed."""
        try:
            found = self.confirm(self.search(progress), progress)
        except Over:
            what = f"the budget of {duration(self.budget)} ended before the confirmation"
            todo = "give it more (--budget), or the same again: it goes on with what was measured"
            raise CheckFailed(what, todo=todo, outcome="Nothing was written.") from None
        return {**found, "tried": self.tried, "rejected": [*self.rejected.values()]}

    def search(self, progress: Progress) -> list[Settings]:
        """The best settings, by three rounds of each candidate; the best first."""
        # here: it takes most of a second, and is installed for this command alone
        try:
            import optuna
            from optuna.storages.journal import JournalFileBackend
            from optuna.trial import TrialState
        except ImportError:
            todo = f"{sys.executable} -m pip install 'mvapich-stack[tune]'"
            raise Missing("optuna, which searches, is not installed", todo=todo) from None

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        rows, set_ = self.request.tunables, self.bench.mpi.environment
        tried = {name: row.tried(set_.get(name), self.ways) for name, row in rows.items()}
        # what somebody set goes first: it may be what is wrong, and the budget may end
        names = sorted(filter(tried.get, tried), key=lambda name: name not in set_)
        domains = {name: ["", *tried[name]] for name in names}
        if not domains:
            todo = "add rows to environments/policy/tuning.yaml, or to your site's"
            raise Refused(f"nothing can be tuned of {self.request.row['module']}", todo=todo)
        self.folder.mkdir(parents=True, exist_ok=True)
        file = JournalFileBackend(str(self.folder / "search.log"))
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(file),
            sampler=optuna.samplers.TPESampler(seed=len(list(self.folder.glob("*")))),
            study_name=hashes.of(domains, self.request.operations)[:12],
            direction="maximize",
            load_if_exists=True,
        )
        if not study.trials:  # each value alone and with its `also`, then what they say together
            for name in names:
                also = {x: y for x, y in rows[name].also.items() if y in domains.get(x, ())}
                for value, more in itertools.product(tried[name], ({}, also)):
                    study.enqueue_trial({**dict.fromkeys(domains, ""), **more, name: value})
        for one in study.get_trials(states=[TrialState.RUNNING]):  # a run ended while it did
            study.tell(one.number, state=TrialState.FAIL)
            study.enqueue_trial(one.params)
        done = study.get_trials(states=[TrialState.COMPLETE])
        known = {_words(one): one.value for one in done if one.value is not None}
        spent = sum(one.duration.total_seconds() for one in done if one.duration)
        end = time.monotonic() + self.budget * SEARCH - spent
        with progress.step("search", f"{duration(max(end - time.monotonic(), 0))} to go") as step:
            repeated = 0  # proposals that are known: so many in a row, and nothing new comes
            while time.monotonic() < end and repeated < REPEATED:
                trial = study.ask()
                for name, values in domains.items():
                    trial.suggest_categorical(name, values)
                words = _words(trial)
                step.note(f"candidate {trial.number + 1}: {words}")
                repeated = repeated + 1 if words in known else 0
                if words not in known:
                    try:
                        known[words] = self._score(json.loads(words))
                    except Over:
                        break
                    except Wrong as wrong:
                        trial.set_user_attr("wrong", str(wrong))
                        known[words] = 0.0
                study.tell(trial, known[words])
        done = study.get_trials(states=[TrialState.COMPLETE])
        ways = {_words(one): one for one in sorted(done, key=lambda one: one.value or 0.0)}
        self.tried = len(ways)
        wrongs = {_words(x): x.user_attrs["wrong"] for x in done if "wrong" in x.user_attrs}
        for words, one in ways.items():
            why = wrongs.get(words) or f"{one.value:.2f} times as fast in the search"
            if (one.value or 0) <= 1 and (len(json.loads(words)) == 1 or not one.value):
                self.rejected[words] = {"settings": json.loads(words), "why": why}
        best = [json.loads(words) for words, one in ways.items() if (one.value or 0) > 1][::-1]
        if not best and study.get_trials(states=[TrialState.WAITING, TrialState.RUNNING]):
            raise Over
        one_by_one = together({words: one.value or 0 for words, one in ways.items()})
        return [one_by_one, *best] if len(one_by_one) > 1 and one_by_one not in best else best

    def _score(self, settings: Settings) -> float:
        if not settings:
            return 1.0  # plain against plain
        if why := self.request.tuning.forbidden(settings):
            raise Wrong(why)
        return self.whole(self.gains(settings, {}, "search")).value

    def confirm(self, candidates: list[Settings], progress: Progress) -> dict[str, Any]:
        """The first of ``candidates`` that other sizes and ranks confirm, less what adds nothing.

        ``sets`` are its variables with the gain of each, ``gain`` that of all together, ``by`` the
        same by operation. Raises Over.
        """
        for found in candidates[:TOP]:
            with progress.step("drop", "variables that gain nothing") as step:
                settings = self._needed(found, step)
            with progress.step("confirm", self._with(settings).mpi.name):
                if self._confirmed(settings, {}):
                    break
        else:
            return {"sets": {}, "gain": None, "by": {}}
        whole, set_ = settings, self.bench.mpi.environment
        for name in sorted(settings, key=set_.__contains__) if len(settings) > 1 else ():
            fewer = {key: value for key, value in settings.items() if key != name}
            with progress.step("confirm", f"without {name}"):
                if fewer and not self._confirmed(settings, fewer):
                    settings = fewer
        if not self._confirmed(settings, {}):  # what is left of it may gain less
            settings = whole
        sets = {}
        for name, value in settings.items():
            fewer = {key: other for key, other in settings.items() if key != name}
            with progress.step("confirm", f"what {name} gains"):
                gain = self.whole(self.gains(settings, fewer, "one" if fewer else "confirm"))
            reason = self.request.tunables[name].model_dump(include={"why", "source"})
            sets[name] = {"value": value, "gain": gain.as_dict(), **reason}
        gains = self.gains(settings, {}, "confirm")
        by = {label: interval(one).as_dict() for label, one in gains.items()}
        return {"sets": sets, "gain": self.whole(gains).as_dict(), "by": by}

    def _needed(self, settings: Settings, step: Step) -> Settings:
        """Without those of which the search sees no gain; what somebody set is tried last."""
        for name in sorted(settings, key=self.bench.mpi.environment.__contains__):
            fewer = {key: value for key, value in settings.items() if key != name}
            step.note(name)
            with contextlib.suppress(Wrong):  # it is wrong, or hangs, without it
                if fewer and self.whole(self.gains(settings, fewer, "search")).value < LEAST:
                    settings = fewer
        return settings

    def _confirmed(self, settings: Settings, than: Settings) -> bool:
        """Whether it is faster than ``than``; where it is not, why is among the rejected."""
        try:
            gains = self.gains(settings, than, "one" if than else "confirm")
            kept, why = decide({name: interval(x) for name, x in gains.items()}, self.whole(gains))
        except Wrong as wrong:
            kept, why = False, str(wrong)
        if not kept:
            other = {n: v for n, v in sorted(settings.items()) if n not in than}
            self.rejected[json.dumps(other)] = {"settings": other, "why": why}
        return kept
