"""Sequences that evolved along a known tree, and what a tree says of them. Pure.

Sequences change by the model of Jukes and Cantor: every change of a base is as probable as any
other. So the likelihood of a tree takes a few lines, and no phylogeny program is asked for it.
"""

import math
import re
from collections import Counter

# Leaves are names, inner nodes pairs.
TREE = (
    ((("a", "b"), ("c", "d")), (("e", "f"), ("g", "h"))),
    ((("i", "j"), ("k", "l")), (("m", "n"), ("o", "p"))),
)
SITES = 600
BRANCH = 0.08  # the chance that a site changes along one branch
BASES = "ACGT"


def chance(seed):
    """Endless numbers from 0 to below 1, the same everywhere (Knuth's MMIX constants)."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 11) / 2**53


def evolved():
    """``{name: sequence}`` of the leaves of TREE."""
    numbers = chance(2026)
    root = [BASES[int(4 * next(numbers))] for _ in range(SITES)]
    return dict(sorted(_below(TREE, root, numbers)))


def _below(node, sequence, numbers):
    if isinstance(node, str):
        return [(node, "".join(sequence))]
    children = ((child, [_changed(base, numbers) for base in sequence]) for child in node)
    return [pair for child, changed in children for pair in _below(child, changed, numbers)]


def _changed(base, numbers):
    if next(numbers) >= BRANCH:
        return base
    return BASES.replace(base, "")[int(3 * next(numbers))]


def phylip(sequences):
    """The text of an alignment in PHYLIP's format."""
    rows = [f"{name:<10}{sequence}" for name, sequence in sequences.items()]
    return f"{len(rows)} {SITES}\n" + "\n".join(rows) + "\n"


def parsed(newick):
    """A tree in Newick's format as nodes ``(name, length of the branch above, children)``."""
    return _node(re.findall(r"[(),;]|:[^(),;]+|[^(),:;\s]+", newick))


def _node(words):
    children = []
    if words[0] == "(":
        while words.pop(0) in "(,":
            children.append(_node(words))
    name = words.pop(0) if words[0] not in "(),;" and not words[0].startswith(":") else ""
    length = float(words.pop(0)[1:]) if words[0].startswith(":") else 0.0
    return name, length, children


def leaves(node):
    """The names below a node."""
    name, _, children = node
    return set().union(*map(leaves, children)) if children else {name}


def splits(tree):
    """The divisions of the leaves in two that a tree makes: its shape, without lengths and root."""
    everything = leaves(tree)
    found = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        todo += node[2]
        part = leaves(node)
        if 1 < len(part) < len(everything) - 1:
            found.add(frozenset({frozenset(part), frozenset(everything - part)}))
    return found


def true_splits():
    """The divisions of TREE."""
    return splits(parsed(str(TREE).replace("'", "").replace(" ", "") + ";"))


def log_likelihood(tree, sequences):
    """The logarithm of the probability of the sequences, given a tree with lengths.

    The sum over what the bases of inner nodes were goes from the leaves up (Felsenstein 1981).
    """
    names = list(sequences)
    columns = Counter(zip(*sequences.values(), strict=True))
    return sum(
        count * math.log(sum(_likelihoods(tree, dict(zip(names, column, strict=True)))) / 4)
        for column, count in columns.items()
    )


def _likelihoods(node, column):
    """Of what is below a node, given each base at it."""
    name, _, children = node
    if not children:
        return [float(base == column[name]) for base in BASES]
    product = [1.0] * 4
    for child in children:
        below = _likelihoods(child, column)
        same = math.exp(-4 / 3 * child[1])
        other = (1 - same) * sum(below) / 4
        product = [p * (other + same * b) for p, b in zip(product, below, strict=True)]
    return product
