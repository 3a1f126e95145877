"""Runs inside Spack (`spack python`): what our recipes say when they are asked, without a solver.

Called with the paths of a request and of an answer, both JSON. The request is a list of
``[question, argument…]``; the answer has the same order. An error that a recipe raises on purpose
is the answer ``{"error": its words}``. Specs are written, not solved for.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import spack.error
import spack.repo
from spack.error import FetchError
from spack.fetch_strategy import URLFetchStrategy
from spack.llnl.util.filesystem import working_dir
from spack.util.prefix import Prefix
from spack_apps_inside import concrete, refusals


def ours(spec):
    """A spec with the namespace, of our two, that has its package."""
    name = spec.partition("@")[0].split()[0]
    mended = spack.repo.PATH.get_repo("mvapich_stack_mends").exists(name)
    return f"mvapich_stack{'_mends' if mended else ''}.{spec}"


def recipe(name: str) -> object:
    return spack.repo.PATH.get_pkg_class(ours(name))


def declared(name: str) -> dict:
    """Versions with their urls, and variants with their values, as Spack has understood them."""
    one = recipe(name)
    package = spack.repo.PATH.get_pkg_class(ours(name))(concrete_root(name))
    variants: dict = {}
    for of_one in one.variants.values():
        for key, variant in of_one.items():
            values = variant.values
            given = [] if values is None or callable(values) else list(iter(values))
            words = {str(getattr(value, "value", value)) for value in given}
            variants.setdefault(key, set()).update(words)
    return {
        "versions": {str(v): url(package, v) for v in one.versions},
        "hashes": {str(v): said.get("sha256", "") for v, said in one.versions.items()},
        "variants": {key: sorted(words) for key, words in variants.items()},
        "messages": sorted(
            message or "" for conflicts in one.conflicts.values() for _, message in conflicts
        ),
        "required": sorted(
            message or ""
            for requirements in one.requirements.values()
            for _, _, message in requirements
        ),
        "manual": bool(one.manual_download),
    }


def url(package: object, version: object) -> str:
    """Where Spack would fetch a version; "" for what has no url (git, by hand)."""
    try:
        return str(package.url_for_version(version) or "")
    except spack.error.SpackError:
        return ""


def concrete_root(name: str) -> object:
    newest = str(max(recipe(name).versions))
    return concrete(f"{ours(name)}@={newest}")


def package_of(spec: str) -> object:
    return concrete(ours(spec)).package


def fetched(package: object) -> dict:
    """Which urls Spack would fetch from, and what it says in the end; nothing is fetched."""
    urls: list[str] = []

    def note(self: object) -> None:
        urls.append(self.url)
        raise FetchError(f"not fetched: {self.url}")

    # a class of its own for each scheme inherits this method
    URLFetchStrategy.fetch = note
    try:
        package.do_fetch()
    except spack.error.SpackError as error:
        return {"urls": urls, "said": f"{error}\n{error.long_message or ''}"}
    return {"urls": urls, "said": ""}


def asked(question: str, *arguments: str) -> object:
    match question:
        case "declared":
            return declared(*arguments)
        case "file name":
            return package_of(arguments[0]).file_name()
        case "in mirror":
            return package_of(arguments[0]).rpm_in_mirror()
        case "by hand":
            return package_of(arguments[0]).download_instr
        case "staged":
            return package_of(arguments[0]).has_code
        case "refusals":
            return refusals(concrete(ours(arguments[0])))
        case "fetch":
            return fetched(package_of(arguments[0]))
        case "install":
            package = package_of(arguments[0])
            package.install(package.spec, package.prefix)
            return "installed"
        case "this system":
            return package_of(arguments[0]).refuse_other_systems(arguments[1])
        case "said":
            name, *rest = arguments
            return recipe(name).variants_said(*rest)
        case "unpack":
            spec, folder, prefix = arguments
            package = package_of(spec)
            with working_dir(folder, create=True):
                below = package.unpack(package.rpm_in_mirror(), "bin/mpicc")
                package.move_in(below, Prefix(prefix))
            return sorted(path.name for path in Path(prefix, "bin").iterdir())
    raise ValueError(question)


def answer(question: str, *arguments: str) -> object:
    try:
        return asked(question, *arguments)
    except spack.error.SpackError as error:
        return {"error": f"{error}\n{error.long_message or ''}".strip()}


request, out = sys.argv[-2:]
answers = [answer(*row) for row in json.loads(Path(request).read_text())]
Path(out).write_text(json.dumps(answers, indent=1))
