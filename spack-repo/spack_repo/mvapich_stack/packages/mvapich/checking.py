"""What is looked at before and after configure: does it know what it is told, did it listen."""

import os
import re

# Folders whose configure scripts belong to tests, or to libraries that are not the MPI's own.
FOREIGN = ("modules/libfabric", "modules/ucx", "modules/hwloc", "modules/json-c", "test", "maint")


def known_options(source, embedded=()):
    """Names such as enable_fast that the configure scripts of a source take, as a set.

    Autoconf writes them into each script as ac_user_opts. Of the bundled libraries those named in
    `embedded` count: an option that only another one knows would do nothing.
    """
    foreign = tuple(one for one in FOREIGN if one.split("/")[-1] not in embedded)
    known = set()
    for folder, folders, files in os.walk(source):
        if os.path.relpath(folder, source).startswith(foreign):
            folders[:] = []
        elif "configure" in files:
            with open(os.path.join(folder, "configure"), errors="replace") as script:
                block = re.search(r"^ac_user_opts='(.*?)'$", script.read(), re.M | re.S)
            known.update(block.group(1).split() if block else [])
    return known


def unknown_options(words, known):
    """Those of the words of a command line for configure that no script of the source knows."""
    found = []
    for word in words:
        name = word.split("=")[0]
        bare = re.sub("^--without-", "--with-", re.sub("^--disable-", "--enable-", name))
        if word.startswith("--") and bare[2:].replace("-", "_") not in known:
            found.append(word)
    return found


def left_out(config, wanted):
    """Those of `wanted`, fabric → word, whose word the text of a config.h does not define as 1."""
    defined = set(re.findall(r"^#define (HAVE_\w+) 1$", config, re.M))
    return {fabric: word for fabric, word in wanted.items() if word not in defined}


def level_of(makefile):
    """The -O level that counts in the CFLAGS of a generated Makefile's text, "" when none does."""
    line = re.search(r"^CFLAGS\s*=(.*)$", makefile, re.M)
    levels = re.findall(r"(?:^|\s)-(O[0-9sgz]?|Ofast)(?=\s|$)", line.group(1)) if line else []
    return levels[-1] if levels else ""


def without_foreign_spawn(text):
    """src/util/mpir_pmi2.inc of 4.x, compiling with Slurm's pmi2.h.

    Slurm declares PMI2_Job_Spawn with types of its own and knows no PMI2_keyval_t. 4.0 has a
    function for that beside the one for every other PMI 2, but compiles both: an error. A source
    that looks otherwise is left as it is.
    """
    begin, end = (
        text.find("static int pmi2_spawn(int count,"),
        text.find("static int pmi2_publish("),
    )
    if not 0 <= begin < end or "USE_PMI2_SLURM" in text[:begin]:
        return text
    guarded = f"#ifndef USE_PMI2_SLURM\n{text[begin:end]}#endif /* USE_PMI2_SLURM */\n\n"
    return text[:begin] + guarded + text[end:]
