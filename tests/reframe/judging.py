"""What checks of applications say of a program's output. Pure: text in, complaints out.

A complaint is a sentence; a check passes when there are none. A figure that was not printed is nan,
and nan is never near anything nor below anything.
"""

import math
import re


def numbers(pattern, text, count=1):
    """The groups of the last match of ``pattern`` as floats; ``count`` times nan if none is."""
    rows = re.findall(pattern, text, re.M)
    if not rows:
        return (math.nan,) * count
    last = rows[-1] if isinstance(rows[-1], tuple) else (rows[-1],)
    return tuple(_float(word) for word in last)


def number(pattern, text):
    """The first group of the last match of ``pattern``, or nan."""
    return numbers(pattern, text)[0]


def variable(name, cdl):
    """The values of a variable in what ncdump printed; [] if it is not there."""
    found = re.search(rf"^ {name} =\n?(.*?);", cdl, re.M | re.S)
    return [_float(word) for word in found[1].replace(",", " ").split()] if found else []


def _float(word):
    """A number as C or Fortran prints it; asterisks and other words are nan."""
    try:
        return float(word.upper().replace("D", "E"))
    except ValueError:
        return math.nan


def equal(what, found, wanted):
    """``found`` must be ``wanted``."""
    return [] if found == wanted else [f"{what} is {found!r}, expected {wanted!r}"]


def near(what, found, wanted, tolerance):
    """``found`` must lie within ``tolerance`` of ``wanted``."""
    if abs(found - wanted) <= tolerance:
        return []
    return [f"{what} is {found!r}, expected {wanted!r} within {tolerance:g}"]


def below(what, found, bound):
    """0 <= ``found`` < ``bound``."""
    return [] if 0 <= found < bound else [f"{what} is {found!r}, must be below {bound:g}"]


def said(pattern, text, otherwise):
    """``pattern`` must stand in ``text``."""
    return [] if re.search(pattern, text, re.M) else [otherwise]


def finite(names, figures):
    """``{name: (value, unit)}`` of those of ``figures``, in the order of ``names``, that are."""
    pairs = zip(names.items(), figures, strict=True)
    return {name: (value, unit) for (name, unit), value in pairs if math.isfinite(value)}
