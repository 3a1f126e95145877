"""The covering set of the recipe `mvapich`, its tables of fabrics, and the tool's own parts.

Nothing here needs Spack.
"""

import json
import re
import sys
import types
from pathlib import Path

import pytest
from recipe_loaded import loaded
from recipes.reading import read_recipe
from ruamel.yaml import YAML

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / "spack-repo/spack_repo/mvapich_stack/packages/mvapich"
SET = TOP / "tests/spack/covering.yaml"
sys.path.insert(0, str(TOP / "tests/spack"))

import cover  # noqa: E402
import overlay  # noqa: E402

tables = loaded(PACKAGE / "package.py")
mvapich2 = loaded(PACKAGE.with_name("mvapich2") / "package.py")
GIVEN = YAML(typ="safe").load(SET.read_text())
ROWS, _ = cover.read_set(SET)


# --- the set ---------------------------------------------------------------------------------


def words(row):
    """variant → values that a row asks for by name."""
    found = {}
    for word in row.spec.split()[1:]:
        if word[0] in "+~":
            found[word[1:]] = ["True" if word[0] == "+" else "False"]
        else:
            name, _, values = word.partition("=")
            found[name.rstrip(":")] = values.split(",")
    return found


def defaults():
    """variant → values that the recipe takes when nothing is said."""
    recipe = read_recipe(PACKAGE / "package.py")
    plain = {"+": "True", "~": "False", "true": "True", "false": "False"}
    return {
        one.name: [plain.get(word, word) for word in str(one.default).split(",")]
        for one in recipe.variants
    }


def test_every_value_is_built_here_or_excused_with_a_reason():
    built = [row for row in ROWS if row.state in ("built", "run") and "@=4" in row.spec]
    standard = defaults()
    had = {
        (name, value)
        for row in built
        for name in GIVEN["cover"]
        for value in words(row).get(name, standard.get(name, ["none"]))
    }
    wanted = {(name, value) for name, values in GIVEN["cover"].items() for value in values}
    excused = {tuple(word.split("=")) for word in GIVEN["elsewhere"]}
    assert wanted - had == excused


def test_no_build_of_the_set_is_idle():
    # With any one row less, some value would not be built.
    built = [row for row in ROWS if row.state in ("built", "run") and "@=4" in row.spec]
    for left_out in built:
        rest = [words(row) for row in built if row is not left_out]
        standard = defaults()
        had = {
            (name, value)
            for row in rest
            for name in GIVEN["cover"]
            for value in row.get(name, standard.get(name, ["none"]))
        }
        own = {
            (name, value)
            for name in GIVEN["cover"]
            for value in words(left_out).get(name, standard.get(name, ["none"]))
        }
        assert own - had, left_out.id


def test_what_the_set_covers_are_the_values_of_the_recipe():
    recipe = read_recipe(PACKAGE / "package.py")
    known = {one.name: {str(value) for value in one.values} for one in recipe.variants}
    for name, values in GIVEN["cover"].items():
        if set(values) == {"True", "False"}:
            assert name in known
        else:
            assert set(values) == known[name] | ({"none"} & set(values)), name


SETS = [cover.read_set(path)[0] for path in sorted(SET.parent.glob("*.yaml"))]
EVERY = [row for rows in SETS for row in rows]


def test_rows_have_names_of_their_own_and_refusals_say_why():
    named = [(row.spec.split("@")[0], row.id) for row in EVERY]
    assert len(set(named)) == len(named)  # the record keeps one line for each
    for row in EVERY:
        assert row.state in ("run", "built", "concretizes", "refused")
        assert bool(row.because) == (row.state == "refused"), row.id
        assert row.why or row.state == "refused", row.id


def test_what_srun_starts_runs_beside_a_slurm():
    for row in EVERY:
        if row.state == "run":
            assert row.slurm == ("process_managers=slurm" in row.spec), row.id


def test_each_netmod_of_4_0_is_run_with_each_pmi():
    runs = [words(row) for row in EVERY if row.state == "run" and "mvapich@=4.0 " in row.spec]
    standard = defaults()
    had = {
        (row.get("netmod", standard["netmod"])[0], row.get("pmi", standard["pmi"])[0])
        for row in runs
    }
    pmis = ("simple", "pmi1", "pmi2", "pmix")
    assert had == {(netmod, pmi) for netmod in ("ofi", "ucx") for pmi in pmis}


# --- the recipe's tables of fabrics -----------------------------------------------------------


def test_no_fabric_is_left_to_tcp_unasked():
    for fabric, required in tables.LIBFABRIC.items():
        providers = set(required.removeprefix("fabrics=").split(","))
        if fabric not in ("tcp", "shm"):
            assert providers - {"tcp", "shm", "rxm"}, fabric
            assert tables.PROVIDER[fabric].split(";")[0] in providers


# --- what an installed build says ------------------------------------------------------------

TEXT = """\
MVAPICH Version:        4.0
MVAPICH Device:         {device}
MVAPICH configure:      {options}
MVAPICH CC:             gcc -O2
"""


@pytest.mark.parametrize(
    ("device", "options", "needed", "expected"),
    [
        (
            "ch4:ucx",
            "--prefix=/opt/m --with-device=ch4:ucx --with-pm=hydra --enable-fortran=all",
            ["libhwloc.so.15", "libucp.so.0", "libc.so.6"],
            "netmod=ucx embedded=none pmi=simple process_managers=hydra +fortran ~cuda "
            "file_systems=auto",
        ),
        (
            "ch4:ucx ofi",
            "--with-device=ch4:ucx,ofi --with-pmi=pmix --with-pmix=/p --with-pm=no",
            ["libhwloc.so.15", "libucp.so.0", "libfabric.so.1"],
            "netmod=ucx pmi=pmix process_managers=none",
        ),
        (
            "ch4:ofi",
            "--with-pmi=pmi2 --with-pmilib=slurm --with-slurm=/usr --with-pm=no "
            "--with-file-system=nfs+ufs --enable-threads=single --disable-fortran",
            ["libhwloc.so.15", "libcudart.so.12"],
            "netmod=ofi embedded=libfabric pmi=pmi2 process_managers=slurm "
            "file_systems=nfs,ufs threads=single ~fortran +cuda",
        ),
        (
            "ch4:ofi",
            "'--with-pm=hydra:gforker' '--with-pmi=pmi2' '--with-pmi2=/opt/cray/pe/pmi/default' "
            "'--disable-romio' '--enable-g=dbg' '--with-wrapper-dl-type=none'",
            ["libfabric.so.1"],
            "embedded=hwloc pmi=cray process_managers=hydra,gforker file_systems=none +debug "
            "~wrapperrpath",
        ),
        (
            "ch4:ofi",
            "--with-pmi=slurm --with-pm=hydra:mpirun",
            [],
            "embedded=none pmi=pmi1 process_managers=slurm",
        ),
        (  # --with-slurm is an option of hydra too, for lists of hosts
            "ch4:ucx",
            "--with-pm=hydra --with-slurm=/opt/slurm --disable-error-checking",
            [],
            "process_managers=hydra pmi=simple error_checking=no threads=multiple",
        ),
        (
            "ch4:ucx",
            "--with-slurm=/opt/slurm --enable-error-checking=yes --enable-threads=runtime",
            [],
            "pmi=simple error_checking=all threads=multiple",
        ),
        (  # configure takes quotes out, and leaves those that were inside others
            "ch4:ucx",
            "--with-pmi2=/usr --with-pm=none CFLAGS='-O2 -DX=it\\'s",
            [],
            "pmi=pmi2 process_managers=none",
        ),
        (  # what is not there, what ROMIO is told of a file system, and one that nobody knows
            "ch4:ofi",
            "--with-pm=hydra --with-pmix=no --with-file-system=gpfs:PE+ufs+home --enable-g=most",
            [],
            "pmi=simple process_managers=hydra file_systems=gpfs,ufs +debug",
        ),
    ],
)
def test_variants_of_a_build_that_is_there(device, options, needed, expected):
    found = tables.Mvapich.variants_said(TEXT.format(device=device, options=options), needed)
    assert set(expected.split()) - set(found) == set()
    assert len({word.lstrip("+~").split("=")[0] for word in found}) == len(found)


def test_the_third_generation_checks_all_arguments_unless_told():
    text = TEXT.format(device="ch4:ofi", options="--with-pm=hydra")
    assert "error_checking=runtime" in tables.Mvapich.variants_said(text, [])
    assert "error_checking=all" in tables.Mvapich.variants_said(text.replace("4.0", "3.0"), [])


# --- use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pmi", "word"),
    [("simple", "pmi2"), ("pmi1", "none"), ("pmi2", "pmi2"), ("pmix", "pmix")],
)
def test_srun_is_asked_for_a_plugin_that_slurm_has(pmi, word):
    """srun(1): for PMI 1 there is none, its libpmi talks to srun by itself."""
    package = tables.Mvapich()
    package.spec = types.SimpleNamespace(variants={"pmi": types.SimpleNamespace(value=pmi)})
    assert package.slurms_word == word


# --- configure -------------------------------------------------------------------------------


class Spec:
    """As much of a spec as the checks beside configure ask for."""

    def __init__(self, *words):
        self.words, self.compiler_flags = words, {}

    def satisfies(self, text):
        return set(text.split()) <= set(self.words)

    def format(self, _):
        return "mvapich@4.0"


def package_of(source, *words, options=()):
    """The package of a spec that satisfies these words, its source in a folder."""
    package = tables.Mvapich()
    package.spec = Spec(*words)
    package.stage = types.SimpleNamespace(source_path=str(source))
    package.configure_args = lambda: list(options)
    return package


def test_an_option_that_only_a_library_from_outside_knows_is_unknown(tmp_path):
    for folder, names in ((".", "enable_fast\nwith_pm"), ("modules/ucx", "enable_logging")):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "configure").write_text(f"ac_user_opts='\n{names}\n'\n")
    asked = ["--disable-logging", "--disable-fast", "--without-pm=x", "CFLAGS=-g"]
    with pytest.raises(Exception, match=r"does not know --disable-logging:"):
        package_of(tmp_path, options=asked).every_option_is_known()
    package_of(tmp_path, "embedded=ucx", options=asked).every_option_is_known()
    with pytest.raises(Exception, match=r"does not know --disable-cuda:"):
        package_of(tmp_path, options=["--disable-cuda"]).every_option_is_known()


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("CFLAGS = -O2 -DNDEBUG", ""),
        ("CFLAGS = -O3 -O2", ""),
        # What builtin's recipe makes of 4.0: --enable-fast=opt sets 03, zero three.
        ("CFLAGS = -DNDEBUG -DNVALGRIND -msse2 -mavx", "no -O at all"),
        ("CXXFLAGS = -O2", "no -O at all"),
        ("CFLAGS = -fOO -Os", "Os"),
    ],
)
def test_a_part_without_the_level_that_was_asked_for_is_refused(tmp_path, line, level):
    (tmp_path / "Makefile").write_text(f"X = -O1\n{line}\nY = -O3\n")
    package = package_of(tmp_path)
    if level:
        with pytest.raises(Exception, match=level):
            package.every_part_is_optimised()
    else:
        package.every_part_is_optimised()


def test_a_fabric_that_an_embedded_library_went_on_without_is_refused(tmp_path):
    config = tmp_path / "modules" / "libfabric" / "config.h"
    config.parent.mkdir(parents=True)
    config.write_text("#define HAVE_VERBS 1\n#define HAVE_EFA 0\n/* #undef HAVE_PSM3 */\n")
    package_of(tmp_path, "embedded=libfabric", "fabrics=infiniband").every_fabric_is_there()
    for fabric, word in (("efa", "HAVE_EFA"), ("psm3", "HAVE_PSM3")):
        with pytest.raises(Exception, match=f"without {fabric}: .* defines no {word}"):
            package_of(tmp_path, "embedded=libfabric", f"fabrics={fabric}").every_fabric_is_there()


@pytest.mark.parametrize(("gpu", "word"), [("cuda", "CUDA"), ("rocm", "HIP"), ("level_zero", "ZE")])
def test_a_gpu_that_configure_lost_is_refused(tmp_path, gpu, word):
    """configure ends with 0 where libcuda.so cannot be linked, or nvcc fails."""
    mpl = tmp_path / "src/mpl/include/mplconfig.h"
    yaksa = tmp_path / "modules/yaksa/src/frontend/include/yaksa_config.h"
    for one in (mpl, yaksa):
        one.parent.mkdir(parents=True)
    for first, second, lost in (
        (f"#define MPL_HAVE_{word} 1\n", f"#define HAVE_{word} 1\n", ""),
        (f"/* #undef MPL_HAVE_{word} */\n", f"#define HAVE_{word} 1\n", f"MPL_HAVE_{word}"),
        (f"#define MPL_HAVE_{word} 1\n", f"/* #undef HAVE_{word} */\n", f"no HAVE_{word}"),
    ):
        mpl.write_text(f"#ifndef MPL_HAVE_{word}\n{first}#endif\n")
        yaksa.write_text(second)
        package_of(tmp_path).gpu_is_there()  # none was asked for
        if lost:
            with pytest.raises(Exception, match=f"without {gpu}: .*{lost}"):
                package_of(tmp_path, f"+{gpu}").gpu_is_there()
        else:
            package_of(tmp_path, f"+{gpu}").gpu_is_there()


@pytest.mark.parametrize(
    ("words", "arch", "sm"),
    [
        ((), "none", "all-major"),
        # nvcc fatal: Unsupported gpu architecture 'compute_52', which all-major names
        (("^cuda@13:",), "none", "75,80,90,100,120"),
        (("^cuda@13:",), "90", "90"),
    ],
)
def test_kernels_are_for_gpus_that_this_cuda_compiles_for(tmp_path, words, arch, sm):
    package = package_of(tmp_path, "+cuda", *words)
    package.spec.variants = {"cuda_arch": types.SimpleNamespace(value=(arch,))}
    package.root = lambda name: f"/of/{name}"
    assert [one for one in package.gpu_args() if "sm" in one] == [f"--with-cuda-sm={sm}"]


def test_a_refusal_names_the_log_of_the_configure_that_did_not_find_it(tmp_path):
    config = tmp_path / "src/mpl/include/mplconfig.h"
    config.parent.mkdir(parents=True)
    config.write_text("/* #undef MPL_HAVE_CUDA */\n")
    with pytest.raises(Exception) as refused:
        package_of(tmp_path, "+cuda").gpu_is_there()
    said = " ".join(str(one) for one in refused.value.args)
    assert "without cuda: src/mpl/include/mplconfig.h defines no MPL_HAVE_CUDA" in said
    assert str(tmp_path / "src/mpl/config.log") in said


@pytest.mark.parametrize(
    ("library", "gpu", "word"),
    [
        ("libfabric", "rocm", "HAVE_ROCR"),
        ("ucx", "cuda", "HAVE_CUDA"),
        ("ucx", "rocm", "HAVE_ROCM"),
    ],
)
def test_a_gpu_that_an_embedded_library_lost_is_refused(tmp_path, library, gpu, word):
    option = {"cuda": "CUDA", "rocm": "HIP"}[gpu]
    for name, line in (
        ("src/mpl/include/mplconfig.h", f"#define MPL_HAVE_{option} 1\n"),
        ("modules/yaksa/src/frontend/include/yaksa_config.h", f"#define HAVE_{option} 1\n"),
        (f"modules/{library}/config.h", f"#define {word} 1\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(line)
    package_of(tmp_path, f"+{gpu}", f"embedded={library}").gpu_is_there()
    (tmp_path / f"modules/{library}/config.h").write_text(f"#define {word} 0\n")
    with pytest.raises(Exception, match=f"without {gpu}: modules/{library}.* no {word}"):
        package_of(tmp_path, f"+{gpu}", f"embedded={library}").gpu_is_there()
    package_of(tmp_path, f"+{gpu}").gpu_is_there()  # the library is from outside


def test_a_library_that_needs_no_gpu_is_refused_after_the_install(tmp_path):
    package = package_of(tmp_path, "+cuda")
    package.prefix = str(tmp_path)
    package.needed_by_libmpi = lambda prefix: ["libcudart.so.12", "libc.so.6"]
    package.gpu_is_linked()
    package.needed_by_libmpi = lambda prefix: ["libc.so.6"]
    with pytest.raises(Exception, match=r"does not need libcudart: \+cuda was lost"):
        package.gpu_is_linked()


def test_what_cuda_13_took_away_is_not_asked_of_it(tmp_path, monkeypatch):
    hooks = tmp_path / "modules/yaksa/src/backend/cuda/hooks/yaksuri_cuda_init_hooks.c"
    hooks.parent.mkdir(parents=True)
    source = (
        "struct cudaDeviceProp prop;\ncerr = cudaGetDeviceProperties(&prop, i);\n"
        "if (prop.computeMode != cudaComputeModeDefault) {\n"
    )
    hooks.write_text(source)
    memory = tmp_path / "modules/ucx/src/uct/cuda/cuda_copy/cuda_copy_md.c"
    memory.parent.mkdir(parents=True)
    memory.write_text("    PFN_cuMemGetHandleForAddressRange get_handle_func;\n")
    monkeypatch.chdir(tmp_path)
    replaced = {"string": True}

    def filter_file(old, new, name, **how):
        assert how == replaced
        text = Path(name).read_text()
        assert old in text
        Path(name).write_text(text.replace(old, new))

    monkeypatch.setattr(tables, "filter_file", filter_file, raising=False)
    package_of(tmp_path, "@4.0:").patch()
    assert "cudaGetDeviceProperties" in hooks.read_text()
    package_of(tmp_path, "@4.0:", "+cuda").patch()
    assert hooks.read_text() == (
        "int mode = -1;\ncerr = cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, i);\n"
        "if (mode != cudaComputeModeDefault) {\n"
    )
    assert "Range get_handle_func" in memory.read_text()  # only an embedded UCX is compiled
    hooks.write_text(source)
    package_of(tmp_path, "@4.0:", "+cuda", "embedded=ucx").patch()
    assert "Range_v11070 get_handle_func" in memory.read_text()


def test_the_spawn_of_other_pmi2_is_left_out_with_slurm(tmp_path):
    source = (
        "static int pmi2_init()\n\nstatic int pmi2_spawn(int count,\n{ PMI2_keyval_t x; }\n\n"
        "static int pmi2_publish(const char name[])\n#else\nstatic int pmi2_spawn(int count,\n"
    )
    file = tmp_path / "mpir_pmi2.inc"

    def changed(text):
        file.write_text(text)
        tables.Mvapich.leave_out_foreign_spawn(file)
        return file.read_text()

    made = changed(source)
    assert made.count("#ifndef USE_PMI2_SLURM") == made.count("#endif /* USE_PMI2_SLURM") == 1
    assert made.index("#ifndef") < made.index("PMI2_keyval_t") < made.index("#endif")
    assert made.index("#endif") < made.index("pmi2_publish")
    assert changed(made) == made
    assert changed("int main;") == "int main;"


@pytest.mark.parametrize(
    ("version", "said", "taken"),
    [
        ("2.3.7-1", "2.3.7", True),  # what the GA tree of 2.3.7-1 says of itself
        ("2.3.7-1", "2.3.7-1", True),
        ("2.3.7-1", "2.3.7-2", False),
        ("2.3.7", "2.3.7-2", False),
        ("2.3.7-1", "2.3.6", False),
    ],
)
def test_a_re_release_may_say_the_name_of_the_first(version, said, taken):
    class Built(mvapich2.Mvapich2):
        fabric = "sock"

    package = Built()
    package.version = version
    _, says, _ = package.expected
    assert bool(re.search(says, f"MVAPICH2 Version:     \t{said}\n")) == taken


# --- the tool --------------------------------------------------------------------------------


def test_an_overlay_redeclares_the_version_and_nothing_else(tmp_path):
    both = {("mvapich-plus", "4.1"): "0" * 64, ("mvapich-plus", "5.0.0"): "1" * 64}
    made = overlay.make_overlay(tmp_path, both)
    text = (made / "packages/mvapich_plus/package.py").read_text()
    assert "class MvapichPlus(Upstreams)" in text
    assert f'version("4.1", sha256="{"0" * 64}")' in text
    assert f'version("5.0.0", sha256="{"1" * 64}")' in text
    assert f"namespace: {made.name}" in (made / "repo.yaml").read_text()
    with pytest.raises(ValueError, match="not a sha256"):
        overlay.make_overlay(tmp_path, {("mvapich", "4.0"): "d62e"})


def test_a_refusal_counts_only_for_its_own_reason():
    row = cover.Row("r", "mvapich@=4.0", "refused", because="use netmod=ofi")
    assert cover.problem_of(row, {"error": "no:\n   use\n netmod=ofi"}) == ""
    assert "another reason" in cover.problem_of(row, {"error": "no compiler"})
    assert cover.problem_of(row, {"hash": "a"}) == "was not refused"
    built = cover.Row("b", "mvapich@=4.0", "run")
    assert cover.problem_of(built, {"hash": "a"}) == ""
    assert "does not concretize" in cover.problem_of(built, {"error": "x"})


def test_the_record_keeps_one_line_for_a_row(tmp_path):
    record = tmp_path / "record.jsonl"
    for outcome in ("not built", "as asked"):
        cover.replace_lines(record, [{"package": "mvapich", "id": "a", "outcome": outcome}])
    cover.replace_lines(record, [{"package": "mvapich2", "id": "a", "outcome": "as asked"}])
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(line["package"], line["outcome"]) for line in lines] == [
        ("mvapich", "as asked"),
        ("mvapich2", "as asked"),
    ]


def test_only_telling_lines_go_into_the_record():
    output = (
        "/some/where/bin/mpiexec -n 2 world\nworld of 2\nMVAPICH Version:        4.0\n"
        "MVAPICH configure:      --prefix=/some/where\nMVAPICH Version:        4.0\n"
        "MPIR_CVAR_NOLOCAL=1 mpiexec\nany source of 4\n"
    )
    assert cover.said_in_short(output) == "world of 2; MVAPICH Version: 4.0; any source of 4"


@pytest.mark.parametrize("word", ["mvapich@4.0", "mvapich=" + "0" * 64, "mvapich@4.0=" + "0" * 63])
def test_what_is_no_accepted_hash_is_refused(word):
    with pytest.raises(cover.argparse.ArgumentTypeError):
        cover.accepted_hash(word)
