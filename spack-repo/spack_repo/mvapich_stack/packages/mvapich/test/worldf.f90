! Started as two ranks by the recipe's stand-alone test.
program world
  use mpi_f08
  implicit none
  integer :: rank, ranks, total
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= ranks * (ranks + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 6)
  if (rank == 0) print '(a,i0)', 'fortran world of ', ranks
  call MPI_Finalize()
end program world
