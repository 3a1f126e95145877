"""What `render`, `check`, `outdated`, `bump` and `test --record` run in a clone.

``what`` is asked for.

It is imported alone: `check` needs none of what makes pages.
"""

from importlib import import_module

MODULES = {
    "derived": "derived",
    "check_recipes": "recipes.checks",
    "Bump": "versions.bump",
    "Elsewhere": "versions.elsewhere",
    "compared": "versions.elsewhere",
    "record": "recorded",
}
what: str = globals()["what"]  # as runpy was told
found = getattr(import_module(MODULES[what]), what)
