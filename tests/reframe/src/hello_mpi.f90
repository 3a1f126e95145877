! As hello.f90, with the module mpi.
program hello
    use mpi
    implicit none
    integer :: rank, ranks, peer, word, ierr, status(MPI_STATUS_SIZE)

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    if (rank /= 0) then
        word = 1000 + rank
        call MPI_Send(word, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierr)
    else
        do peer = 1, ranks - 1
            call MPI_Recv(word, 1, MPI_INTEGER, peer, 0, MPI_COMM_WORLD, status, ierr)
            print '(a, i0, a, i0, a, i0)', 'mpi heard ', word, ' from ', peer, ' of ', ranks
        end do
    end if
    call MPI_Finalize(ierr)
end program hello
