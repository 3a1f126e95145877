"""A library of the distribution as an EasyBuild module: links to its files, nothing is compiled.

EasyBuild's toolchain classes look for ``$EBROOTOPENBLAS/lib``, ``$EBROOTFFTW/include`` and so on;
distributions put such files into folders shared with everything else. The easyconfig names the
library's pkg-config file and the files that belong to it, this easyblock checks the version and
makes an installation folder of absolute links. Without the distribution's package the module is
broken: the easyconfig names the package in ``osdependencies``.
"""

import shutil
from pathlib import Path

from easybuild.framework.easyblock import EasyBlock
from easybuild.framework.easyconfig import CUSTOM, MANDATORY
from easybuild.tools.build_log import EasyBuildError
from easybuild.tools.run import run_shell_cmd


class SystemLibrary(EasyBlock):
    """Support for a library that the distribution has installed."""

    @staticmethod
    def extra_options():
        """Easyconfig parameters of this easyblock."""
        return EasyBlock.extra_options(
            {
                "pkg_config": [None, "Name of the pkg-config file, without .pc", MANDATORY],
                "libraries": [[], "Patterns of files below pkg-config's libdir", CUSTOM],
                "headers": [[], "Patterns of files below pkg-config's includedir", CUSTOM],
                "programs": [[], "Programs, which are found on $PATH", CUSTOM],
            }
        )

    def configure_step(self):
        """Stop unless the distribution's version is the one that the easyconfig names."""
        name = self.cfg["pkg_config"]
        found = self.ask_pkg_config("--modversion")
        if found != self.version:
            raise EasyBuildError(
                "\n".join(
                    (
                        f"the distribution's {self.name} is not the one of this easyconfig",
                        f"    found     {found or f'nothing: pkg-config knows no {name}'}",
                        f"    allowed   {self.version}",
                        f"    because   packages over it are built and checked with {self.version}",
                        f"    to do     install {self.packages()}, or leave easyconfigs/system off"
                        f" the robot path: EasyBuild then builds {self.name} itself",
                    )
                )
            )

    def build_step(self):
        """Nothing to compile."""

    def install_step(self):
        """Link libraries, headers and programs into the installation folder."""
        for folder, patterns, variable in (
            ("lib", self.cfg["libraries"], "libdir"),
            ("include", self.cfg["headers"], "includedir"),
        ):
            if patterns:
                home = Path(self.ask_pkg_config(f"--variable={variable}") or "/")
                for pattern in patterns:
                    self.link(folder, sorted(home.glob(pattern)), f"{home}/{pattern}")
        for program in self.cfg["programs"]:
            path = shutil.which(program)
            self.link("bin", [Path(path)] if path else [], program)

    def link(self, folder, files, wanted):
        """Links to `files` in the installation's `folder`; EasyBuildError when there are none."""
        if not files:
            raise EasyBuildError(
                "%s of the distribution lacks %s (its packages: %s)",
                self.name,
                wanted,
                self.packages(),
            )
        target = Path(self.installdir, folder)
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            self.log.info("linking %s into %s", file, target)
            (target / file.name).symlink_to(file.absolute())

    def packages(self):
        """The distribution's packages by the names that the easyconfig has for them, as text."""
        alternatives = [
            [one] if isinstance(one, str) else list(one) for one in self.cfg["osdependencies"]
        ]
        return ", ".join(" or ".join(names) for names in alternatives) or "it"

    def ask_pkg_config(self, option):
        """pkg-config's answer about this library; empty when it does not know the library."""
        command = f"pkg-config {option} {self.cfg['pkg_config']}"
        result = run_shell_cmd(command, fail_on_error=False, hidden=True, in_dry_run=True)
        return result.output.strip() if result.exit_code == 0 else ""
