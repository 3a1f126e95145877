"""mvapich-stack: one description of a machine in, a validated MPI software stack out."""

__version__ = "2026.11.0.dev0"
