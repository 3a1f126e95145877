"""Spack as a builder: the pinned clone, run isolated from the user's own, and what it is asked for.

pins → clone → isolated → runner are Spack itself; lock, sources, installing and modules are the
steps that `mvstack install` (builder.py) and `mvstack lock` (cli.py) are made of. What must run
inside Spack's own Python stands in inside/ and talks JSON.
"""
