"""Spack's lock file: reading it, and the gates it must pass before anything is installed."""
