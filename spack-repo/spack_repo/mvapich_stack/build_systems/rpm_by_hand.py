"""Software that its maker gives out as RPMs only, by hand: never fetched, unpacked from a mirror.

Nobody publishes hashes of these RPMs. So the site that put the file there writes its SHA-256
beside it (`sha256sum FILE > FILE.sha256`), and bytes that do not match are refused.
"""

import hashlib
import os
import re
import sys

import spack.mirrors.mirror
from spack.package import *

PAGE = "https://mvapich.cse.ohio-state.edu/downloads/"


class RpmByHand(PackageBase):
    """What the recipes of binary products share: where the file goes, and how it is unpacked."""

    #: the folder of the file in a source mirror, and the name of the product in messages
    mirror_folder = ""

    def content_hash(self, content=None):
        """Spack's hash, which is of package.py alone, and that of the files it inherits from."""
        found = hashlib.sha256(super().content_hash(content).encode())
        for one in type(self).__mro__:
            if one.__module__.startswith("spack_repo.mvapich_stack.build_systems."):
                with open(sys.modules[one.__module__].__file__, "rb") as source:
                    found.update(source.read())
        return found.hexdigest()

    def file_name(self):
        """The file that this spec stands for; each recipe says."""
        raise NotImplementedError

    @staticmethod
    def mirror_roots():
        """The folders of all source mirrors that are folders of this machine."""
        mirrors = spack.mirrors.mirror.MirrorCollection(source=True).values()
        urls = [mirror.fetch_url for mirror in mirrors]
        return [url[len("file://") :] for url in urls if url.startswith("file://")]

    def rpm_in_mirror(self):
        """The RPM, once its bytes are those whose hash stands beside it.

        Raises InstallError that names the page, the file and the folder when it is not there.
        """
        name = self.file_name()
        places = [os.path.join(root, self.mirror_folder, name) for root in self.mirror_roots()]
        found = [path for path in places if os.path.isfile(path)]
        if not found:
            raise InstallError(
                f"{name} is in no source mirror; it is never fetched for you",
                "\n".join(
                    [
                        f"page      {PAGE}",
                        f"file      {name}",
                        "put it    "
                        + (
                            " or ".join(places)
                            or f"<mirror>/{self.mirror_folder}/{name}, once "
                            "there is one: `spack mirror add --type source site file:///…`"
                        ),
                        f"beside it {name}.sha256, made by `sha256sum {name} > {name}.sha256`",
                        "or        declare the site's own installation as an external",
                        *self.more_to_say(),
                    ]
                ),
            )
        self.same_bytes(found[0])
        return found[0]

    def more_to_say(self):
        """Lines that a recipe adds to the message about a file that is not there."""
        return []

    @staticmethod
    def same_bytes(path):
        """Raises InstallError unless the file has the hash that is written beside it."""
        beside = path + ".sha256"
        if not os.path.isfile(beside):
            raise InstallError(
                f"there is no {os.path.basename(beside)} beside the file",
                f"to do     check that the file is what the page gives, then in its folder\n"
                f"          sha256sum {os.path.basename(path)} > {os.path.basename(beside)}",
            )
        with open(beside, encoding="utf-8") as text:
            wanted = re.match(r"[0-9a-f]{64}\b", text.read())
        digest = hashlib.sha256()
        with open(path, "rb") as data:
            for chunk in iter(lambda: data.read(1 << 20), b""):
                digest.update(chunk)
        if wanted is None or digest.hexdigest() != wanted.group(0):
            raise InstallError(
                f"{os.path.basename(path)} is not the file whose hash stands beside it",
                f"found     sha256 {digest.hexdigest()}\n"
                f"expected  sha256 {wanted.group(0) if wanted else 'none in ' + beside}\n"
                "to do     get the file again, or, if it changed on purpose, write its hash anew",
            )

    def unpack(self, rpm, program):
        """Unpack ``rpm`` here; the folder in it that holds ``program``, e.g. ``bin/mpicc``."""
        # Both tools belong to EL 8 and 9, for which alone there are such RPMs.
        which("bash", required=True)("-c", 'rpm2cpio "$0" | cpio -idm --quiet', rpm)
        for folder, _, _ in os.walk("."):
            if os.path.isfile(os.path.join(folder, program)):
                return os.path.abspath(folder)
        raise InstallError(
            f"{os.path.basename(rpm)} holds no {program}",
            "to do     check that it is the RPM of the right product (`rpm2cpio FILE | cpio -t`)",
        )

    def move_in(self, folder, prefix):
        """Copy ``folder`` to ``prefix`` and let its scripts name the new place.

        The maker's guide has this as the way without root: unpack, then mend the compiler scripts.
        """
        install_tree(folder, prefix)
        built_for = folder[len(os.getcwd()) :]
        scripts = []
        for below in ("bin", os.path.join("lib", "pkgconfig"), os.path.join("lib64", "pkgconfig")):
            root = os.path.join(prefix, below)
            names = sorted(os.listdir(root)) if os.path.isdir(root) else []
            paths = [os.path.join(root, name) for name in names]
            scripts += [path for path in paths if os.path.isfile(path) and self._is_text(path)]
        if scripts:
            filter_file(built_for, str(prefix), *scripts, string=True, backup=False)

    @staticmethod
    def _is_text(path):
        with open(path, "rb") as data:
            return b"\0" not in data.read(4096)
