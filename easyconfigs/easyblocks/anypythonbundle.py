"""A bundle of Python packages for EasyBuild's Python, or for the distribution's.

EasyBuild's own PythonBundle insists on a Python module. Where the stack stands on the
distribution's compiler, tools beneath come from the distribution too (``--filter-deps=Python``) and
there is none; EasyBuild's class for one Python package takes the system's then, and so does this.
"""

import os
import sys
from pathlib import Path

from easybuild.easyblocks.generic.pythonbundle import PythonBundle
from easybuild.easyblocks.generic.pythonpackage import find_python_cmd_from_ec
from easybuild.tools.build_log import EasyBuildError
from easybuild.tools.environment import unset_env_vars
from easybuild.tools.modules import get_software_root


class AnyPythonBundle(PythonBundle):
    """Support for Python packages in one module, over whichever Python there is."""

    distribution = None

    def prepare_python(self):
        """Find the Python, which need not be a module when Python is filtered out."""
        if get_software_root("Python") or not self.filtered():
            super().prepare_python()
            return
        python = Path(find_python_cmd_from_ec(self.log, self.cfg, required=True))
        if sys.prefix != sys.base_prefix and python.is_relative_to(sys.prefix):
            raise EasyBuildError(
                "\n".join(
                    (
                        f"{self.name} would be installed for the Python that runs EasyBuild",
                        f"    found     {python}",
                        "    allowed   the distribution's Python, as the command python",
                        "    because   no user has that one",
                        "    to do     install python-is-python3 (Debian, Ubuntu) or"
                        " python-unversioned-command (Red Hat and its kin)",
                    )
                )
            )
        self.distribution = python.resolve()  # of an environment: what it was made with
        os.environ["EBROOTPYTHON"] = str(python.parent.parent)
        try:
            super().prepare_python()
        finally:
            unset_env_vars(["EBROOTPYTHON"], verbose=False)

    def fix_shebang(self):
        """Start programs with the distribution's Python that they were installed for.

        EasyBuild has them ask for whichever `python` comes first: a distribution need not have
        that command, and where a user's own comes first, what they stand on is not in it.
        """
        super().fix_shebang()
        if self.distribution is None:
            return
        for path in Path(self.installdir, "bin").glob("*"):
            text = path.read_bytes() if path.is_file() else b""
            first, end, rest = text.partition(b"\n")
            if first.startswith(b"#!") and first.endswith(b" python"):
                path.write_bytes(b"#!" + os.fsencode(self.distribution) + end + rest)

    def filtered(self):
        """Whether the easyconfig names Python, and EasyBuild was told to leave it to the system."""
        with self.cfg.disable_templating():
            named = [dep["name"] for dep in self.cfg["dependencies"]]
        return "Python" in named and "Python" not in self.cfg.dependency_names()
