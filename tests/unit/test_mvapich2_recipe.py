"""The recipe of MVAPICH2 without Spack: what configure is given, and how a build is read back.

It is run over a stand-in for Spack and its spec. Which options configure
takes stands in easyconfigs/easyblocks/mvapich_options.py.
"""

import re
import socket
import sys
import types
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recipe_loaded import loaded
from recipes.reading import RECIPES, read_recipe

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "easyconfigs" / "easyblocks"))

import mvapich_options as tables  # noqa: E402

FOLDER = RECIPES / "mvapich2"
RECIPE = read_recipe(FOLDER / "package.py")
VARIANTS = {variant.name: variant for variant in RECIPE.variants}
# Options of the two hwloc inside: contrib/hwloc_v1 and hwloc_v2, config/hwloc_internal.m4.
HWLOC = {"--disable-libudev", "--disable-opencl", "--disable-gl", "--disable-nvml"}
# The same is done however these are spelled, so that the other spelling would lie: MRAIL.
LYING = {
    "--enable-xrc",
    "--disable-hsam",
    "--enable-ibv-dlopen",
    "--enable-omb",
}
# What recipes of spack-packages v2025.11.0 may ask of its own mvapich2.
BUILTIN = {
    "fabrics": "psm psm2 sock nemesisib nemesis mrail nemesisibtcp nemesistcpib nemesisofi",
    "process_managers": "auto slurm hydra gforker remshell",
    "pmi_version": "pmi1 pmi2 pmix",
    "threads": "single funneled serialized multiple",
    "ch3_rank_bits": "16 32",
    "file_systems": "auto lustre gpfs nfs ufs",
    **dict.fromkeys(
        ["wrapperrpath", "debug", "cuda", "regcache", "alloca", "hwlocv2", "hwloc_graphics"],
        "true false",
    ),
}


MODULE = loaded(FOLDER / "package.py")
Mvapich2 = MODULE.Mvapich2


class Prefix(str):
    """A path whose attributes are folders below it, as Spack's."""

    def __getattr__(self, name):
        return Prefix(f"{self}/{name}")


class Spec:
    """As much of a concrete spec as the recipe asks of it."""

    def __init__(self, asked, flags=()):
        self.asked = asked
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in asked.items()}
        self.compiler_flags = {"cflags": list(flags)}

    def satisfies(self, text):
        for word in text.split():
            if word[0] in "+~":
                if self.asked.get(word[1:]) is not (word[0] == "+"):
                    return False
            else:
                name, _, value = word.partition("=")
                found = self.asked.get(name)
                if value not in (found if isinstance(found, tuple) else (found,)):
                    return False
        return True

    def format(self, _):
        return "mvapich2@2.3.7"

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=Prefix(f"/deps/{name}"))


def default_of(variant):
    """A variant's default as the stand-in holds it."""
    if variant.boolean:
        return variant.default == "true"
    return (variant.default,) if variant.name in MULTI else variant.default


MULTI = ("process_managers", "file_systems")


def asked_of(**changes):
    """All variants that exist for these changes of the defaults."""
    asked = {
        name: default_of(variant) for name, variant in VARIANTS.items() if not variant.when
    } | {name: value for name, value in changes.items() if not VARIANTS[name].when}
    for name, variant in VARIANTS.items():
        if variant.when and Spec(asked).satisfies(variant.when):
            asked[name] = changes.get(name, default_of(variant))
    return asked


def args_of(asked, flags=()):
    """configure's options for these variants."""
    package = Mvapich2()
    package.spec = Spec(asked, flags)
    return package.configure_args()


def wishes():
    """Any spec of the recipe that no conflict refuses."""

    def complete(chosen):
        asked = asked_of(**chosen)
        if asked["fabrics"] != "mrail":
            asked["cuda"] = False
            asked.pop("cuda_kernels", None)
        return asked

    managers = st.one_of(
        st.sampled_from([("auto",), ("none",), ("slurm",), ("jsm",), ("flux",)]),
        st.sets(st.sampled_from(["hydra", "mpirun", "gforker", "remshell"]), min_size=1).map(
            lambda found: tuple(sorted(found))
        ),
    )
    names = [one for one in VARIANTS["file_systems"].values if one not in ("auto", "none")]
    systems = st.one_of(
        st.sampled_from([("auto",), ("none",)]),
        st.sets(st.sampled_from(names), min_size=1).map(lambda found: tuple(sorted(found))),
    )
    given_values = {
        name: st.booleans() if variant.boolean else st.sampled_from(sorted(variant.values))
        for name, variant in VARIANTS.items()
        if name not in MULTI
    }
    return st.fixed_dictionaries(
        {**given_values, "process_managers": managers, "file_systems": systems}
    ).map(complete)


property_test = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@property_test
@given(asked=wishes())
def test_configure_knows_every_option_that_it_is_given(asked):
    names = [word.split("=")[0] for word in args_of(asked)]
    known = tables.options_for("MVAPICH2", "2.3.7").flags | HWLOC
    assert not set(names) - known
    assert len(names) == len(set(names))


@property_test
@given(asked=wishes())
def test_no_option_does_the_opposite_of_what_it_says(asked):
    args = args_of(asked)
    assert not LYING & {word.split("=")[0] for word in args}
    assert not [word for word in args if word.startswith("--with-hwloc=/")]


@property_test
@given(asked=wishes())
def test_a_build_is_read_back_as_it_was_asked_for(asked):
    line = " ".join(f"'{word}'" for word in args_of(asked))
    text = (
        "MVAPICH2 Version:     \t2.3.7\nMVAPICH2 Device:      \tch3:whatever\n"
        f"MVAPICH2 configure:   \t{line}\n"
    )
    for word in Mvapich2.variants_said(text):
        if word[0] in "+~":
            assert asked[word[1:]] is (word[0] == "+"), word
            continue
        name, _, value = word.partition("=")
        wanted = asked[name]
        if wanted == ("auto",) and name == "process_managers":
            wanted = ("hydra", "mpirun")  # what auto means
        assert value == (",".join(wanted) if isinstance(wanted, tuple) else wanted), word


def test_every_device_of_the_recipe_is_one_of_the_source():
    known = tables.options_for("MVAPICH2", "2.3.7").devices
    for device in MODULE.DEVICES.values():
        base, _, networks = device.rpartition(":")
        for network in networks.split(","):
            assert f"{base}:{network}" in known


def test_file_systems_are_those_of_romio():
    assert set(MODULE.FILE_SYSTEMS) == tables.options_for("MVAPICH2", "2.3.7").file_systems


@pytest.mark.parametrize(
    ("changes", "present", "absent"),
    [
        ({}, ["--with-device=ch3:mrail", "--with-pm=hydra:mpirun", "--with-pmi=simple"], []),
        ({"process_managers": ("none",)}, ["--with-pm=no"], []),
        ({"process_managers": ("mpirun",)}, ["--with-pm=mpirun"], []),
        (
            {"process_managers": ("slurm",), "pmi_version": "pmix"},
            ["--with-pm=slurm", "--with-slurm=/deps/slurm", "--with-pmi=pmix"],
            [],
        ),
        ({"fabrics": "psm2"}, ["--with-psm2=/deps/opa-psm2"], ["--with-psm=/deps/psm"]),
        ({"fabrics": "sock"}, ["--with-device=ch3:sock"], ["--with-rdma=gen2"]),
        ({"fabrics": "nemesisofi"}, ["--with-ofi=/deps/libfabric"], []),
        ({"cuda": True}, ["--enable-cuda=yes", "--with-cuda=/deps/cuda"], ["--disable-cuda"]),
        ({"cuda": True, "cuda_kernels": False}, ["--enable-cuda=basic"], []),
        ({}, ["--disable-cuda"], []),
        ({"torus3d": True, "hsam": True}, ["--enable-3dtorus-support", "--enable-hsam"], []),
        ({"limic2": True}, ["--with-limic2"], []),
        ({"debug": True}, ["--enable-fast=O0", "--enable-g=dbg"], []),
        ({"file_systems": ("none",)}, ["--disable-romio"], ["--enable-romio"]),
    ],
)
def test_what_is_asked_for_reaches_configure(changes, present, absent):
    args = args_of(asked_of(**changes))
    assert not set(present) - set(args)
    assert not set(absent) & set(args)


def test_the_level_of_optimisation_is_the_users_or_two():
    assert "--enable-fast=O2,ndebug" in args_of(asked_of())
    assert "--enable-fast=O3,ndebug" in args_of(asked_of(), ["-O3"])


def test_a_makefile_without_the_level_is_told_apart(tmp_path):
    package = Mvapich2()
    package.spec = Spec(asked_of())
    package.stage = types.SimpleNamespace(source_path=str(tmp_path))
    (tmp_path / "Makefile").write_text("CFLAGS = -DNDEBUG -O2\n")
    package.every_part_is_optimised()
    (tmp_path / "Makefile").write_text("CFLAGS = -DNDEBUG\n")
    with pytest.raises(Exception, match="no -O at all"):
        package.every_part_is_optimised()


def test_an_option_that_no_script_takes_is_told_apart(tmp_path):
    package = Mvapich2()
    package.spec = Spec(asked_of(fabrics="sock"))
    package.stage = types.SimpleNamespace(source_path=str(tmp_path))
    names = {
        re.sub("^(en|dis)able_", "enable_", word.split("=")[0][2:].replace("-", "_"))
        for word in package.configure_args()
    }
    taken = sorted(names - {"with_ch3_rank_bits"})
    (tmp_path / "configure").write_text("ac_user_opts='\n" + "\n".join(taken) + "\n'\n")
    with pytest.raises(Exception, match=r"does not know --with-ch3-rank-bits=32:"):
        package.every_option_is_known()


def test_variants_of_builtin_are_kept_with_their_words():
    mine = RECIPE.variant_values()
    for name, words in BUILTIN.items():
        assert not set(words.split()) - mine[name], name


def test_the_three_releases_are_there_and_none_is_deprecated():
    assert [one.name for one in RECIPE.versions] == ["2.3.7-2", "2.3.7-1", "2.3.7", "2.3.4"]
    assert "deprecated=" not in (FOLDER / "package.py").read_text()


def test_what_environments_ask_for_are_words_of_the_recipe():
    managers = VARIANTS["process_managers"].values
    assert "flux" in managers


def test_gcc_words_of_both_fortrans_are_set():
    # FFLAGS alone leaves the module files of mpi and mpi_f08 uncompiled with gfortran 10.
    text = (FOLDER / "package.py").read_text()
    assert '("FFLAGS", "FCFLAGS")' in text


class Package(types.SimpleNamespace):
    """What `launch` reads of a package."""


@pytest.mark.parametrize(
    ("managers", "words"),
    [
        (("auto",), ["/mpi/bin/mpiexec", "-n", "2"]),
        (("gforker",), ["/mpi/bin/mpiexec", "-n", "2"]),
        (("mpirun",), ["/mpi/bin/mpirun_rsh", "-np", "2", "-hostfile", "HOSTS"]),
    ],
)
def test_the_launcher_of_the_tests_is_the_builds_own(managers, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hosts = tmp_path / "hosts"
    package = Mvapich2()
    package.spec, package.prefix = Spec(asked_of(process_managers=managers)), Prefix("/mpi")
    assert package.launch() == [str(hosts) if word == "HOSTS" else word for word in words]
    assert not hosts.exists() or hosts.read_text() == f"{socket.gethostname()}:2\n"


def test_without_a_launcher_the_tests_are_skipped():
    package = Mvapich2()
    package.spec, package.prefix = Spec(asked_of(process_managers=("none",))), Prefix("/mpi")
    with pytest.raises(Exception, match="something outside this build"):
        package.launch()


@pytest.mark.parametrize(
    ("device", "fabric"),
    [("ch3:mrail", "mrail"), ("ch3:nemesis:tcp", "nemesistcp"), ("ch3:psm3", ""), ("ch4:ofi", "")],
)
def test_an_external_of_another_device_does_not_pass_for_the_default(device: str, fabric: str):
    text = f"MVAPICH2 Version:\t2.3.7\nMVAPICH2 configure:\t'--with-device={device}'\n"
    assert Mvapich2.fabric_said(text) == fabric
