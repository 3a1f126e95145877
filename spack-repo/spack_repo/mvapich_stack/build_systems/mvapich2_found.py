"""What a build of MVAPICH2 says of itself, as variants of the recipe."""

import re

from spack_repo.mvapich_stack.build_systems.mpich_found import MpichFound

from spack.package import *


class Mvapich2Found(MpichFound):
    """Variants from `mpichversion`; the recipe has `devices` and `mrail_options`."""

    @classmethod
    def determine_version(cls, exe):
        """The version, from `mpichversion`; None where another product answers.

        None, too, for a device that is no value of `fabrics`: it would pass for the default.
        """
        text = Executable(exe)(output=str, error=str)
        said = re.search(r"^MVAPICH2 Version\s*:\s*(\S+)", text, re.M)
        return said[1] if said and cls.fabric_said(text) else None

    @classmethod
    def fabric_said(cls, text):
        """The value of `fabrics` from the text of `mpichversion`; empty for another device."""
        options = cls.options_said(text)
        device = re.search(r"^MVAPICH2 Device\s*:\s*(\S+)", text, re.M)
        # The configure line has the networks of nemesis; the device may be a default, unsaid.
        asked = options.get("--with-device") or (device[1] if device else "ch3:mrail")
        if asked == "ch3:psm":
            return "psm" if "--with-psm" in options else "psm2"
        return next((one for one, known in cls.devices.items() if known == asked), "")

    @classmethod
    def variants_said(cls, text, needed=()):
        """Variants from the text of `mpichversion`; what libmpi.so needs decides none."""
        options, fabric = cls.options_said(text), cls.fabric_said(text)
        said = [f"fabrics={fabric}"] if fabric else []
        pm = re.split("[:,]", options.get("--with-pm") or "hydra,mpirun")
        said.append("process_managers=" + (",".join(sorted(pm)) if pm != ["no"] else "none"))
        if pm == ["slurm"]:
            word = options.get("--with-pmi", "pmi2").split("/")[0]
            said.append("pmi_version=" + {"simple": "pmi1"}.get(word, word))
        said.append("ch3_rank_bits=" + options.get("--with-ch3-rank-bits", "16"))
        said += cls.common_said(options, "all")
        for name, value in (
            ("wrapperrpath", cls.is_on(options, "wrapper-rpath", True)),
            ("alloca", cls.is_on(options, "alloca", False)),
            ("regcache", cls.is_on(options, "registration-cache", True)),
            ("hwlocv2", options.get("--with-hwloc") == "v2"),
        ):
            said.append(("+" if value else "~") + name)
        return said + (cls.mrail_said(options) if fabric == "mrail" else ["~cuda"])

    @classmethod
    def mrail_said(cls, options):
        """Variants of fabrics=mrail that the configure line decides; others stay unsaid."""
        cuda = options.get("--enable-cuda", "no")
        said = ["~cuda" if cuda == "no" else "+cuda"]
        if cuda != "no":
            said.append("~cuda_kernels" if cuda == "basic" else "+cuda_kernels")
        for name, (enable, disable) in cls.mrail_options.items():
            # Where one spelling says nothing, whatever is said means the other, see MRAIL.
            option = (enable or disable).split("-", 3)[-1]
            any_way = any(f"--{way}-{option}" in options for way in ("enable", "disable"))
            if name in ("cma", "limic2"):
                asked = f"--with-{name}" in options or name == "cma"
                value = asked and f"--without-{name}" not in options
            elif not disable:
                value = any_way
            elif not enable:
                value = not any_way
            elif any_way:
                value = cls.is_on(options, option, True)
            else:
                continue
            said.append(("+" if value else "~") + name)
        return said
