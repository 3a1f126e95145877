"""Spack as a builder: the pinned clone, run isolated from the user's own, and what it is asked for.

clone → isolated → runner are Spack itself; environments, lock, sources, installing and modules are
the steps that `mvstack install` (install.py) and `mvstack lock` (cli/lock.py) are made of. What
must run inside Spack's own Python stands in inside/ and talks JSON.
"""
