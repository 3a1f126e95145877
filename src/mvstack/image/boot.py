"""`mvstack image boot-test`: machines of the image's own size in its cloud, tested, and ended."""

import contextlib
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.image import store, vm
from mvstack.image.clouds import Booted
from mvstack.image.flow import Asked, test_image
from mvstack.image.nodes import ALONE, spread
from mvstack.image.plan import ImagePlan
from mvstack.image.site import cloud, read_site
from mvstack.image.store import Version
from mvstack.image.vm import Machine
from mvstack.support.errors import CheckFailed, Problem, Refused
from mvstack.support.progress import Progress

_NETWORK = {"aws": ("aws_subnet", "aws_security_group"), "azure": ("azure_subnet",)}
_MORE = 15  # minutes that machines may be there for beside its test: to start, and to end
_AGAIN = 30  # s; Python drops what is raised while it frees an object, so raise it again


@dataclass(frozen=True)
class Spend:
    """How many machines, for how many minutes at most, and what all may cost."""

    nodes: int
    minutes: int
    budget: float


def boot_test(
    asked: Asked, number: str | None, site: Path, spend: Spend, progress: Progress
) -> Version:
    """Test a version on machines of its own size that are started for that, and ended after it.

    Raises Refused before anything is started, where the cost could be higher or nobody says the
    price; CheckFailed when it takes longer; and all that a test raises.
    """
    minutes = spend.minutes
    plan, image = asked.plan("boot-test")
    known = read_site(site)
    cost = _cost(image, known, spend)
    if spend.nodes > 1 and not spread(image):
        problem = Problem(ALONE, "--nodes", found=str(spend.nodes), todo="--nodes 1")
        raise Refused(problem, outcome="Nothing was started.")
    states = ("candidate", "tested", "published")
    version = store.find(asked.folder(plan.root), image.name, number, states)
    there = cloud(image.cloud, known)
    with contextlib.ExitStack() as stack:
        # a pipeline that is cancelled is told so by SIGTERM, and leaves no machine either
        stack.enter_context(_raising(signal.SIGTERM, KeyboardInterrupt()))
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mvstack-boot-")))
        key = vm.make_key(work)
        public = key.with_suffix(".pub").read_text().strip()
        build = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
        how = Booted(image, public, build, minutes + _MORE, known, spend.nodes)
        what = f"{spend.nodes} x {image.machine}, at most {cost:.2f} in all"
        with progress.step("machines", what):
            addresses = stack.enter_context(there.machines(version.version, how))
        name = image.machine.lower()  # as ssh looks it up
        host, port = known.get("ssh_host"), int(known.get("ssh_port") or 22)
        at = {
            f"{name}-{count}": (str(host), port + count - 1) if host else (address, port)
            for count, address in enumerate(addresses, 1)
        }
        config = stack.enter_context(vm.reached_by(work / "config", at, image.user, key))
        over = Problem(f"the test did not end within {minutes} minutes", todo="--minutes N")
        late = CheckFailed(over, outcome="Its machines were ended.")
        stack.enter_context(_raising(signal.SIGALRM, late))
        stack.callback(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, minutes * 60, _AGAIN)
        return test_image(asked, version.version, progress, [Machine(one, config) for one in at])


def _cost(image: ImagePlan, site: dict[str, Any], spend: Spend) -> float:
    """What it can cost at most, in the currency of the site's prices."""
    if image.cloud == "qemu":
        raise Refused("an image for QEMU is started here", todo="mvstack image test")
    price = (site.get("prices") or {}).get(image.machine)
    lacking = [one for one in _NETWORK[image.cloud] if not site.get(one)]
    if price is None:
        lacking.append(f'prices {{"{image.machine}": AN HOUR}}')
    minutes = spend.minutes + _MORE
    cost = float(price or 0) * minutes / 60 * spend.nodes
    problem = None
    if lacking:
        said = f"the site's file says nothing of {', '.join(lacking)}"
        problem = Problem(said, "--settings", todo="images/variables.pkr.hcl says what they are")
    elif cost > spend.budget:
        said = f"{minutes} minutes of {spend.nodes} x {image.machine} cost {cost:.2f}"
        todo = f"allow more, or less time (--minutes; {_MORE} more are to start and to end)"
        problem = Problem(said, "--budget", found=f"{spend.budget:.2f}", todo=todo)
    if problem:
        raise Refused(problem, outcome="Nothing was started.")
    return cost


@contextlib.contextmanager
def _raising(number: signal.Signals, error: BaseException) -> Iterator[None]:
    """Raise ``error`` in the block when that signal comes."""

    def raise_it(*_: object) -> None:
        raise error

    before = signal.signal(number, raise_it)
    try:
        yield
    finally:
        signal.signal(number, before)
