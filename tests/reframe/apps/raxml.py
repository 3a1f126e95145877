"""RAxML: the tree along which sequences evolved is found, with the likelihood that it has."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
import phylogeny
from app_mixin import AppMixin

SEARCHES = 4
# of a search: its number, its time, the likelihood without rates that differ by site
SEARCH = r"^Inference\[(\d+)\]: Time \S+ CAT-based likelihood (\S+), "


@rfm.simple_test
class Raxml(rfm.RunOnlyRegressionTest, AppMixin):
    """Four searches, shared out over the ranks, find the tree behind 16 sequences."""

    software = "RAxML"
    tags = {"app", "nightly", "raxml"}
    ranks = parameter([1, 2, 4])
    results = ["RAxML_result.check.RUN.*"]

    @run_before("run")
    def prepare(self):
        self.write_input("dna.phy", phylogeny.phylip(phylogeny.evolved()))
        model = ["-m", "GTRCAT", "-V", "--JC69"]  # Jukes and Cantor, all sites alike
        words = [*model, "-p", "1", "-N", str(SEARCHES), "-s", "dna.phy", "-n", "check"]
        self.trace_loader("raxmlHPC-MPI", *words)


def complaints(text, ranks):
    """What is wrong with what RAxML printed and with the trees that it wrote."""
    said = re.findall(r"^This is RAxML MPI Process Number: (\d+)$", text, re.M)
    found = judging.equal("processes", sorted(map(int, said)), list(range(ranks)))
    searches = dict(re.findall(SEARCH, text, re.M))
    all_of_them = [str(number) for number in range(SEARCHES)]
    listed = sorted(number for number, _ in re.findall(SEARCH, text, re.M))
    found += judging.equal("searches, each once", listed, all_of_them)
    trees = re.findall(r"^\(.*;$", text, re.M)
    found += judging.equal("trees", len(trees), SEARCHES)
    if found:
        return found
    sequences, wanted = phylogeny.evolved(), phylogeny.true_splits()
    for number, newick in zip(all_of_them, trees, strict=True):
        tree = phylogeny.parsed(newick)
        if phylogeny.splits(tree) != wanted:
            found.append(f"tree {number} is not the one along which the sequences evolved")
            continue
        # RAxML moves the branches once more before it writes the tree, now with rates that may
        # differ by site, of which it finds none: that changes the likelihood by 1e-4. It seeks the
        # largest to 0.1, and all searches find the same tree.
        likelihood = phylogeny.log_likelihood(tree, sequences)
        what = f"log likelihood of tree {number}"
        found += judging.near(what, judging.number(f"({searches[number]})", text), likelihood, 2e-3)
    return found


def figures(text):
    """The time of all searches."""
    return judging.finite(
        {"searches": "s"}, [judging.number(r"^Overall execution time: (\S+) secs", text)]
    )
