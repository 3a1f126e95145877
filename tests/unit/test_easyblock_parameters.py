"""Parameters of the MPI easyblock: each is checked per version, and said to configure in its words.

Nothing is built. The modules beside the easyblock need no EasyBuild.
"""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

EASYBLOCKS = Path(__file__).resolve().parents[2] / "easyconfigs" / "easyblocks"
sys.path.insert(0, str(EASYBLOCKS))

import mpich_options  # noqa: E402
import mvapich_options  # noqa: E402
from mvapich_configure import (  # noqa: E402
    c_options,
    collective_options,
    compiling_with_slurms_pmi2,
    configure_options,
    known_options,
    lacking_of,
    level_of_makefile,
    option_names,
    unknown_options,
)
from mvapich_gpu import gpu_options  # noqa: E402
from mvapich_parameters import check_configopts, check_parameters  # noqa: E402

DEVICES = {
    ("MVAPICH2", "2.3.7-2"): "ch3:mrail",
    ("MVAPICH", "3.0"): "ch4:ucx",
    ("MVAPICH", "4.0"): "ch4:ofi",
    ("MVAPICH", "4.1"): "ch4:ofi,ucx",
    ("MPICH", "4.0.2"): "ch4:ofi",
}
EACH = pytest.mark.parametrize("product", DEVICES, ids=" ".join)


def options_of(product):
    name, version = product
    if name == "MPICH":
        return mpich_options.options_for(version)
    return mvapich_options.options_for(name, version)


def params_of(product, **changes):
    """The easyblock's defaults with the product's usual device, and `changes`."""
    return {
        "device": DEVICES[product],
        "adapters": True,
        "pmi": "simple",
        "launcher": "hydra",
        "slurm": None,
        "pmix": None,
        "cray_pmi": None,
        "flux": None,
        "verbs": None,
        "daos": None,
        "gpu": "none",
        "gpu_root": None,
        "gpu_arch": None,
        "libfabric": "system",
        "ucx": "system",
        "hwloc": "system",
        "file_systems": ["ufs", "nfs"],
        "xpmem": False,
        "datatype_engine": None,
        "thread_level": "multiple",
        "error_checking": "runtime",
        "optimisation": "O2",
        "omb": False,
        "sanity_launch": None,
        **changes,
    }


def check(product, **changes):
    return check_parameters(*product, params_of(product, **changes), options_of(product))


def line_for(product, **changes):
    params, options = params_of(product, **changes), options_of(product)
    return configure_options(*product, params, options) + gpu_options(params, options)


@EACH
def test_the_defaults_fit_every_version(product):
    assert check(product) == []


@EACH
@pytest.mark.parametrize(
    "name", ["device", "pmi", "launcher", "gpu", "thread_level", "optimisation", "error_checking"]
)
def test_a_wrong_word_names_parameter_found_and_allowed(product, name):
    (text,) = check(product, **{name: "nonsense"})
    head, found, allowed, *_ = text.splitlines()
    assert name in head and " ".join(product) in head
    assert found.split() == ["found", "'nonsense'"]
    assert allowed.split()[0] == "allowed" and len(allowed.split()) > 1


def test_the_nearest_valid_word_is_offered():
    (text,) = check(("MVAPICH", "4.0"), file_systems=["ufs", "luster"])
    assert "nearest   lustre" in text


def test_all_errors_come_at_once():
    wrong = check(("MVAPICH", "4.0"), device="ch3:mrail", gpu="cud", optimisation="fast")
    assert len(wrong) == 3


@pytest.mark.parametrize(
    ("product", "change"),
    [
        (("MVAPICH", "4.0"), {"launcher": "mpirun_rsh"}),
        (("MVAPICH", "4.1"), {"launcher": "mpirun_rsh"}),
        (("MVAPICH", "4.0"), {"device": "ch3:mrail"}),
        (("MVAPICH2", "2.3.7-2"), {"device": "ch4:ucx"}),
        (("MVAPICH2", "2.3.7-2"), {"gpu": "rocm"}),
        (("MVAPICH2", "2.3.7-2"), {"xpmem": True}),
        (("MVAPICH", "3.0"), {"gpu": "rocm"}),
        (("MVAPICH", "4.0"), {"libfabric": "relative/path"}),
    ],
)
def test_what_a_version_lacks_is_refused(product, change):
    assert len(check(product, **change)) == 1


@pytest.mark.parametrize("pmi", ["slurm", "cray", "pmix"])
def test_a_pmi_of_the_resource_manager_is_refused_with_hydra(pmi):
    (text,) = check(("MVAPICH", "4.0"), pmi=pmi)
    assert "world of one" in text
    assert check(("MVAPICH", "4.0"), pmi=pmi, launcher="none") == []


def test_4_1_is_taken_from_4_0_and_says_so():
    old, new = options_of(("MVAPICH", "4.0")), options_of(("MVAPICH", "4.1"))
    assert old.confirmed and not new.confirmed
    assert "4.0" in new.source
    assert new.flags == old.flags


@EACH
def test_slurm_is_left_out_unless_asked_for(product):
    assert "--without-slurm" in line_for(product)
    assert "--without-slurm" not in line_for(product, launcher="slurm")


@EACH
@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_the_level_of_optimisation_is_always_said(product, level):
    (said,) = [one for one in line_for(product, optimisation=level) if "--enable-fast" in one]
    assert level in said.partition("=")[2].split(",")


def test_within_a_node_4_0_takes_the_queue_that_grows_by_rank_and_not_by_pair():
    said = "--with-ch4-posix-eager-modules=iqueue"
    assert said in line_for(("MVAPICH", "4.0"), device="ch4:ofi")
    assert said not in line_for(("MVAPICH", "4.0"), device="ch4:ucx")  # UCX has its own


@pytest.mark.parametrize(
    ("change", "patched", "asked"),
    [
        ({"device": "ch4:ucx"}, True, True),
        ({"device": "ch4:ucx"}, False, False),
        ({"device": "ch4:ucx", "gpu": "cuda"}, True, False),
        ({"device": "ch4:ofi"}, True, False),
    ],
)
def test_ch4_ucx_has_memory_for_collectives_where_messages_stay_its_own(
    tmp_path, change, patched, asked
):
    header = tmp_path / "src" / "mpid" / "ch4" / "include" / "mpidpre.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define MPIDI_CH4_NETMOD_MESSAGES\n" if patched else "\n")
    found = collective_options(tmp_path, params_of(("MVAPICH", "4.0"), **change))
    assert ("--with-ch4-shmmods=posix" in found) == asked
    assert {one.partition("=")[0] for one in found} <= options_of(("MVAPICH", "4.0")).flags


@pytest.mark.parametrize("headers", [True, False])
def test_the_libfabric_that_4_0_embeds_is_built_without_the_headers_of_librdmacm(tmp_path, headers):
    if headers:
        (tmp_path / "include" / "infiniband").mkdir(parents=True)
        (tmp_path / "include" / "infiniband" / "ib.h").touch()
    for libfabric, product in (
        ("embedded", "MVAPICH"),
        ("system", "MVAPICH"),
        ("embedded", "MPICH"),
    ):
        version = "4.0" if product == "MVAPICH" else "4.0.2"
        line = line_for((product, version), libfabric=libfabric, verbs=str(tmp_path))
        wanted = (libfabric, product) == ("embedded", "MVAPICH") and not headers
        assert ("--disable-ucr" in line) == wanted
    line = line_for(("MVAPICH", "4.0"), libfabric="embedded", adapters=False, verbs=str(tmp_path))
    assert {"--enable-only", "--enable-tcp"} <= set(line)
    of_libfabric = ["--disable-ucr", "--enable-only", "--enable-tcp", "--enable-rxm"]
    assert unknown_options(of_libfabric, set()) == []


@EACH
def test_adapters_are_left_out_only_of_the_libfabric_that_is_built_along(product):
    (text,) = check(product, adapters=False)
    assert "parameter adapters does not fit" in text and "libfabric = 'embedded'" in text
    left = check(product, adapters=False, libfabric="embedded")
    assert (left == []) == (product[0] == "MVAPICH" and product[1][0] == "4")


def test_a_source_without_the_libfabric_that_it_should_embed_is_told(tmp_path):
    params = params_of(("MPICH", "4.0.2"), libfabric="embedded")
    assert lacking_of(tmp_path, params) == ["libfabric"]
    assert lacking_of(tmp_path, params | {"device": "ch4:ucx"}) == []
    (tmp_path / "modules" / "libfabric").mkdir(parents=True)
    (tmp_path / "modules" / "libfabric" / "configure").touch()
    assert lacking_of(tmp_path, params) == []


def test_4_0_is_told_without_and_not_disable_for_gpus():
    line = line_for(("MVAPICH", "4.0"))
    assert {"--without-cuda", "--without-hip", "--without-ze"} <= set(line)
    assert not [one for one in line if one.startswith(("--disable-cuda", "--disable-hip"))]
    asked = line_for(("MVAPICH", "4.0"), gpu="rocm", gpu_root="/opt/rocm")
    assert "--with-hip=/opt/rocm" in asked and "--without-cuda" in asked


def test_mrail_is_linked_to_verbs_and_needs_no_headers_where_it_runs():
    """It opened libibverbs.so, and ended in MPI_Init where the packages of headers are not."""
    assert "--disable-ibv-dlopen" in line_for(("MVAPICH2", "2.3.7-2"), device="ch3:mrail")
    assert "--disable-ibv-dlopen" not in line_for(("MVAPICH2", "2.3.7-2"), device="ch3:psm")
    assert "--disable-ibv-dlopen" not in line_for(("MVAPICH", "4.0"))


def test_nemesis_of_mvapich2_does_without_its_queue_in_shared_memory() -> None:
    option = "--enable-nemesis-dbg-nolocal"
    assert option in line_for(("MVAPICH2", "2.3.7-2"), device="ch3:nemesis:tcp")
    assert option not in line_for(("MVAPICH2", "2.3.7-2"), device="ch3:mrail")
    assert option not in line_for(("MPICH", "4.0.2"), device="ch3:nemesis:tcp")


def test_benchmarks_of_the_source_are_had_by_silence():
    # its configure takes --enable-omb for --disable-omb
    assert "--disable-omb" in line_for(("MVAPICH", "4.0"))
    assert not [one for one in line_for(("MVAPICH", "4.0"), omb=True) if "omb" in one]


@EACH
def test_every_option_passed_is_in_the_table_of_its_version(product):
    known = {flag[2:].replace("-", "_") for flag in options_of(product).flags}
    known |= {one.replace("without_", "with_").replace("disable_", "enable_") for one in known}
    assert unknown_options(option_names(" ".join(line_for(product))), known) == []


def test_options_are_read_from_the_scripts_of_the_source(tmp_path):
    text = "#!/bin/sh\nac_user_opts='\nenable_option_checking\nwith_pmi\nenable_fast\n'\n"
    (tmp_path / "configure").write_text(text)
    below = tmp_path / "src" / "mpi" / "romio"
    below.mkdir(parents=True)
    (below / "configure").write_text(text.replace("with_pmi", "with_file_system"))
    known = known_options(tmp_path)
    asked = ["--with-pmi", "--without-pmi", "--with-file-system", "--enable-registration-cache"]
    assert unknown_options(asked, known) == ["--enable-registration-cache"]


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        (" -DNDEBUG -DNVALGRIND -msse2 -mavx", ""),
        (" -O2 -march=native  -DNDEBUG -O3", "O3"),
        (" -O3 -O0", "O0"),
        (" -Ofast", "Ofast"),
        ("", ""),
    ],
)
def test_the_last_level_in_the_makefile_counts(flags, level):
    # the first line of flags is what MVAPICH 4.0 makes of --enable-fast=opt: no level at all
    assert level_of_makefile(f"CC = gcc\nCFLAGS ={flags}\nCXXFLAGS = -O1\n") == level


@given(st.sampled_from(sorted(DEVICES)), st.text(), st.text(), st.text())
def test_any_text_is_accepted_or_explained(product, device, pmi, launcher):
    for text in check(product, device=device, pmi=pmi, launcher=launcher):
        assert "allowed" in text and "found" in text


def refused(product, *words):
    unknown, misread = {}, {}
    if product[0] != "MPICH":
        unknown, misread = (
            mvapich_options.unknown_in(*product),
            mvapich_options.misread_in(*product),
        )
    return check_configopts(*product, words, options_of(product), unknown, misread)


def test_extra_options_that_would_be_ignored_are_errors_with_what_to_pass_instead():
    (text,) = refused(("MVAPICH", "4.0"), "--disable-cuda", "--with-xpmem=/opt/xpmem")
    assert "--disable-cuda" in text and "--without-cuda" in text


def test_a_level_that_4_0_drops_is_an_error():
    (text,) = refused(("MVAPICH", "4.0"), "--enable-fast=opt")
    assert "no -O at all" in text
    assert refused(("MVAPICH", "4.0"), "--enable-fast=O3,ndebug") == []


@EACH
def test_a_misspelt_option_is_an_error_everywhere(product):
    (text,) = refused(product, "--enable-threds=multiple")
    assert "--enable-threads" in text


def test_the_benchmarks_of_a_source_without_any_are_refused():
    (text,) = check(("MPICH", "4.0.2"), omb=True)
    assert "omb" in text
    assert check(("MVAPICH", "4.0"), omb=True) == []


def test_srun_with_the_library_s_own_pmi_asks_for_nothing_of_slurm():
    line = line_for(("MVAPICH", "4.0"), launcher="slurm")
    assert "--with-pm=no" in line
    assert not [one for one in line if "slurm" in one]
    slurms = line_for(("MVAPICH", "4.0"), launcher="slurm", pmi="pmi2")
    assert {"--with-pmilib=slurm", "--with-slurm", "--with-pmi=pmi2"} <= set(slurms)


def test_jsm_and_flux_are_the_process_managers_of_2_3_7():
    assert "--with-pm=jsm" in line_for(("MVAPICH2", "2.3.7-2"), launcher="jsm")
    assert len(check(("MVAPICH", "4.0"), launcher="jsm")) == 1


RECIPES = sorted((EASYBLOCKS.parent / "m").glob("M*PICH*/*-GCC-*.eb"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_each_mpi_easyconfig_fits_its_version(recipe):
    said = {}
    exec(recipe.read_text(encoding="utf-8"), said)  # an easyconfig is a Python file
    product = (said["name"], said["version"])
    params = params_of(("MPICH", "4.0.2"))
    params |= {name: said[name] for name in params if name in said}
    assert check_parameters(*product, params, options_of(product)) == []
    line = configure_options(*product, params, options_of(product))
    assert [
        one for one in option_names(" ".join(line)) if one not in options_of(product).flags
    ] == []


PMI2_SOURCE = """
static int pmi2_spawn(int count, char *commands[]);
int before;
static int pmi2_spawn(int count, char *commands[])
{ return PMI2_Job_Spawn((const PMI2_keyval_t **) 0); }
static int pmi2_publish(const char name[])
{ return 0; }
#ifdef USE_PMI2_SLURM
static int pmi2_spawn_slurm(int count);
#endif
"""


def test_slurms_pmi2_is_not_given_the_spawn_of_others() -> None:
    made = compiling_with_slurms_pmi2(PMI2_SOURCE)
    kept = made[: made.index("#ifndef USE_PMI2_SLURM")] + made[made.index("#endif\n\nstatic") :]
    assert "PMI2_keyval_t" not in kept and "pmi2_publish" in kept
    assert compiling_with_slurms_pmi2(made) == made


def test_a_source_that_looks_otherwise_is_left_alone() -> None:
    for text in ("", "int main;", "static int pmi2_publish(\nstatic int pmi2_spawn(int count,"):
        assert compiling_with_slurms_pmi2(text) == text


@EACH
def test_c_of_old_is_taken_by_the_compilers_that_refuse_it_unasked(product):
    assert [c_options(*product, gcc) for gcc in range(9, 14)] == [[]] * 5
    old = product[0] in ("MVAPICH2", "MPICH") or product[1] == "3.0"
    for gcc in (14, 15, 16):
        said = c_options(*product, gcc)
        assert ("-std=gnu17" in said) == (gcc > 14)
        assert ("-Wno-error=incompatible-pointer-types" in said) == old
