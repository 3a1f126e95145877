"""Where an MPI has no dynamic processes, which MPI_Open_port and MPI_Comm_spawn need."""

# Over UCX: MVAPICH, where the address does not fit into a port's name unless our recipe patched it
# (docs/upstream.md), and MPICH 4.0, which has no dynamic processes.
WITHOUT = {("mvapich", "3."), ("mvapich", "4.1"), ("mvapich-plus", ""), ("mpich", "4.0")}


def lacking(mpi):
    """Why the plan's ``mpi`` has no dynamic processes; "" where nothing speaks against them."""
    product, version = mpi["product"], mpi["version"]
    if product == "mvapich2":
        return "MVAPICH2 needs MV2_SUPPORT_DPM=1 for it"
    cannot = any(product == one and version.startswith(of) for one, of in WITHOUT)
    cannot = cannot or (product == "mvapich" and mpi.get("provided"))
    if cannot and mpi["device"] == "ch4:ucx":
        return f"MPI_Open_port of {product} {version} fails over UCX"
    return ""
