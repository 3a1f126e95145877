"""`mvstack image boot-test`: a machine of the image's own size in its cloud, tested, and ended."""

import contextlib
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mvstack.image import store, vm
from mvstack.image.clouds import Booted
from mvstack.image.flow import Asked, test_image
from mvstack.image.plan import ImagePlan
from mvstack.image.site import cloud, read_site
from mvstack.image.store import Version
from mvstack.image.vm import Machine
from mvstack.support.errors import CheckFailed, Problem, Refused
from mvstack.support.progress import Progress

_NETWORK = {"aws": ("aws_subnet", "aws_security_group"), "azure": ("azure_subnet",)}
_MORE = 15  # minutes that a machine may be there for beside its test: to start, and to end


def boot_test(
    asked: Asked, number: str | None, site: Path, spend: tuple[int, float], progress: Progress
) -> Version:
    """Test a version on a machine of its own size that is started for that, and ended after it.

    ``spend`` is how many minutes the test may take and what it all may cost. Raises Refused before
    anything is started, where the cost could be higher or nobody says the price; CheckFailed when
    it takes longer; and all that a test raises.
    """
    minutes, budget = spend
    plan, image = asked.plan("boot-test")
    known = read_site(site)
    cost = _cost(image, known, minutes + _MORE, budget)
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
        how = Booted(image, public, build, minutes + _MORE, known)
        with progress.step("machine", f"{image.machine}, which costs {cost:.2f} at most"):
            address = stack.enter_context(there.machine(version.version, how))
        at = (str(known.get("ssh_host") or address), int(known.get("ssh_port") or 22))
        name = image.machine.lower()  # as ssh looks it up
        config = stack.enter_context(vm.reached_by(work / "config", name, at, image.user, key))
        over = Problem(f"the test did not end within {minutes} minutes", todo="--minutes N")
        late = CheckFailed(over, outcome="Its machine was ended.")
        stack.enter_context(_raising(signal.SIGALRM, late))
        stack.callback(signal.alarm, 0)
        signal.alarm(minutes * 60)
        return test_image(asked, version.version, progress, Machine(name, config))


def _cost(image: ImagePlan, site: dict[str, Any], minutes: int, budget: float) -> float:
    """What it can cost at most, in the currency of the site's prices."""
    if image.cloud == "qemu":
        raise Refused(Problem("an image for QEMU is started here", todo="mvstack image test"))
    price = (site.get("prices") or {}).get(image.machine)
    lacking = [one for one in _NETWORK[image.cloud] if not site.get(one)]
    if price is None:
        lacking.append(f'prices {{"{image.machine}": AN HOUR}}')
    cost = float(price or 0) * minutes / 60
    problem = None
    if lacking:
        said = f"the site's file says nothing of {', '.join(lacking)}"
        problem = Problem(said, "--settings", todo="images/variables.pkr.hcl says what they are")
    elif cost > budget:
        said = f"{minutes} minutes of {image.machine} cost {cost:.2f}"
        todo = f"allow more, or less time (--minutes; {_MORE} more are to start and to end)"
        problem = Problem(said, "--budget", found=f"{budget:.2f}", todo=todo)
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
