! gfortran 14, 15 and 16 read what MPI_Irecv receives before MPI_Wait: GCC PR 120958.
!
!     mpifort -O2 irecv.f90 && mpiexec -n 2 ./a.out      prints 1. and 1.; with -fno-tree-sra 3. and 3.
!
! The array is small, and no call but MPI_Irecv is given it: the compiler takes it for unchanged afterwards. So it
! is with mpif.h and with the module mpi; with mpi_f08, whose interfaces take a descriptor, the result is right.
program irecv
  implicit none
  include 'mpif.h'
  double precision :: mine(2), theirs(2)
  integer :: me, many, request, ierr, i, status(MPI_STATUS_SIZE)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, many, ierr)
  theirs = 0
  do i = 1, many - 1
    mine = 1
    call MPI_Irecv(theirs, 2, MPI_DOUBLE_PRECISION, 1 - me, 0, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(mine, 2, MPI_DOUBLE_PRECISION, 1 - me, 0, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, status, ierr)
    mine(1) = mine(1) + 2 * theirs(1)
    mine(2) = mine(2) + 2 * theirs(2)
  end do
  if (me == 0) print *, mine(1), mine(2)
  call MPI_Finalize(ierr)
end program
