"""Which packages are MVAPICH: one list, so that the recipes that mind cannot disagree."""

PRODUCTS = ("mvapich", "mvapich-plus", "mvapich2", "mvapich2-gdr", "mvapich2-x")


def mvapich(spec):
    """The MVAPICH that gives the concrete ``spec`` its MPI; None where it has another, or none."""
    if "mpi" not in spec:
        return None
    provider = spec["mpi"]
    return provider if provider.name in PRODUCTS else None
