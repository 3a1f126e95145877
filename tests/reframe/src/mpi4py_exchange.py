"""Buffers, pickled objects and a file over mpi4py; prints what is wrong as a count for each.

mpiexec -n 4 python3 mpi4py_exchange.py
"""

import time
from array import array
from pathlib import Path

import mpi4py
from mpi4py import MPI

COUNT = 4099  # numbers of each rank in the file; a prime, so that no block falls on a page
FILE = "mpi4py_exchange.data"

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def wrong_sums():
    """Sums over the ranks of buffers of doubles and of integers, against the closed form."""
    doubles = array("d", (0.5 * i + rank for i in range(1000)))
    integers = array("q", (i * (rank + 1) for i in range(1000)))
    sums, products = array("d", bytes(8000)), array("q", bytes(8000))
    comm.Allreduce([doubles, MPI.DOUBLE], [sums, MPI.DOUBLE], op=MPI.SUM)
    comm.Allreduce([integers, MPI.INT64_T], [products, MPI.INT64_T], op=MPI.MAX)
    wanted = [size * 0.5 * i + size * (size - 1) / 2 for i in range(1000)]
    return sum(a != b for a, b in zip(sums, wanted, strict=True)) + sum(
        value != i * size for i, value in enumerate(products)
    )


def thing(owner):
    """An object of some shape and of over 1 MiB, which takes more than an eager message."""
    return {"owner": owner, "naïve": [None, (owner, 2.5), {owner}], "bytes": bytes([owner]) * 2**20}


def wrong_objects():
    """Pickled objects round a ring, gathered by all, and scattered from the last rank."""
    left, right = (rank - 1) % size, (rank + 1) % size
    wrong = comm.sendrecv(thing(rank), dest=right, source=left) != thing(left)
    wrong += comm.allgather((rank, str(rank))) != [(i, str(i)) for i in range(size)]
    parts = [thing(i) for i in range(size)] if rank == size - 1 else None
    return int(wrong + (comm.scatter(parts, root=size - 1) != thing(rank)))


def wrong_in_file():
    """Each rank writes every size-th number; each reads one block of neighbours."""
    mode = MPI.MODE_CREATE | MPI.MODE_RDWR
    file = MPI.File.Open(comm, FILE, mode)
    every = MPI.INT64_T.Create_vector(COUNT, 1, size).Commit()
    file.Set_view(8 * rank, MPI.INT64_T, every)
    file.Write_all([array("q", (3 * (i * size + rank) + 1 for i in range(COUNT))), MPI.INT64_T])
    file.Sync()
    comm.Barrier()
    file.Set_view(0, MPI.INT64_T, MPI.INT64_T)
    back = array("q", bytes(8 * COUNT))
    file.Read_at_all(rank * COUNT, [back, MPI.INT64_T])
    every.Free()
    file.Close()
    return sum(value != 3 * (rank * COUNT + i) + 1 for i, value in enumerate(back))


def seconds_of_a_round():
    """The time of one allreduce of one double, the fastest of five hundreds."""
    one, total = array("d", [1]), array("d", [0])
    fastest = 1e9
    for _ in range(5):
        comm.Barrier()
        began = time.perf_counter()
        for _ in range(100):
            comm.Allreduce([one, MPI.DOUBLE], [total, MPI.DOUBLE])
        fastest = min(fastest, (time.perf_counter() - began) / 100)
    return comm.allreduce(fastest, op=MPI.MAX)


def main():
    """Run all; rank 0 reads the file without MPI too, and prints."""
    if rank == 0:
        Path(FILE).unlink(missing_ok=True)
    comm.Barrier()
    wrong = [comm.allreduce(test()) for test in (wrong_sums, wrong_objects, wrong_in_file)]
    fastest = seconds_of_a_round()
    if rank != 0:
        return
    plain = array("q")
    plain.frombytes(Path(FILE).read_bytes())
    unlike = abs(len(plain) - size * COUNT)
    unlike += sum(value != 3 * i + 1 for i, value in enumerate(plain))
    print(f"mpi4py {mpi4py.__version__}, {size} ranks, {len(plain)} numbers in the file")
    print("wrong: sums {}, objects {}, file {}, file read plainly {}".format(*wrong, unlike))
    print(f"allreduce {1e6 * fastest:.3f} us")


main()
