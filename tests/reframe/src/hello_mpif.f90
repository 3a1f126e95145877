! As hello.f90, with mpif.h: each of two ranks receives into a small array while it sends. The array is used
! in a loop and nowhere but there, so that a compiler that does not know of MPI_Wait may read it too early.
program hello
    implicit none
    include 'mpif.h'
    integer :: rank, ranks, peer, request, ierr, words(2), heard(2), total(2), status(MPI_STATUS_SIZE)

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    heard = 0
    total = 0
    do peer = 0, ranks - 1
        if (peer == rank) cycle
        words = [1000 + rank, rank]
        call MPI_Irecv(heard, 2, MPI_INTEGER, peer, 0, MPI_COMM_WORLD, request, ierr)
        call MPI_Send(words, 2, MPI_INTEGER, peer, 0, MPI_COMM_WORLD, ierr)
        call MPI_Wait(request, status, ierr)
        total(1) = total(1) + heard(1)
        total(2) = total(2) + heard(2)
    end do
    if (rank == 0) print '(a, i0, a, i0, a, i0)', 'mpif.h heard ', total(1), ' from 1 of ', ranks
    call MPI_Finalize(ierr)
end program hello
