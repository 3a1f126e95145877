! The least Fortran program with the module mpi_f08: rank 0 hears a word from every other rank.
program hello
    use mpi_f08
    implicit none
    integer :: rank, ranks, peer, word

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    if (rank /= 0) then
        word = 1000 + rank
        call MPI_Send(word, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD)
    else
        do peer = 1, ranks - 1
            call MPI_Recv(word, 1, MPI_INTEGER, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
            print '(a, i0, a, i0, a, i0)', 'Fortran heard ', word, ' from ', peer, ' of ', ranks
        end do
    end if
    call MPI_Finalize()
end program hello
