! netCDF from Fortran: a file of netCDF-4 (through HDF5) and one of its CDF-5 format (through PnetCDF),
! of which ranks write slabs of the last dimension collectively and read slabs of the first; then rank
! 0 reads them without MPI.
program netcdf_parallel
  use mpi
  use netcdf
  implicit none
  integer, parameter :: whole(3) = [257, 32, 61]
  integer :: rank, ranks, error
  double precision :: seconds

  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  call both('netcdf4', nf90_netcdf4)
  call both('cdf5', nf90_64bit_data)
  call mpi_finalize(error)

contains

  subroutine both(name, format)
    character(*), intent(in) :: name
    integer, intent(in) :: format
    integer :: wrong, all_wrong, alone
    call write_part(name // '.nc', format)
    wrong = wrong_in(name // '.nc', 1, rank, ranks, .false.)
    call mpi_allreduce(wrong, all_wrong, 1, mpi_integer, mpi_sum, mpi_comm_world, error)
    if (rank /= 0) return
    alone = wrong_in(name // '.nc', 1, 0, 1, .true.)
    print '(a, " by ", i0, " ranks: ", i0, " numbers, wrong by other ranks ", i0, ", without MPI ", ' // &
          'i0, "; ", f0.4, " s")', name, ranks, product(whole), all_wrong, alone, seconds
  end subroutine

  ! Where the part of a rank begins and how much of each dimension it holds, if ranks share out one.
  subroutine part_of(dimension, at, among, start, count)
    integer, intent(in) :: dimension, at, among
    integer, intent(out) :: start(3), count(3)
    start = 1
    count = whole
    start(dimension) = whole(dimension) * at / among + 1
    count(dimension) = whole(dimension) * (at + 1) / among - start(dimension) + 1
  end subroutine

  ! A number that follows from its place alone.
  elemental integer function number(a, b, c)
    integer, intent(in) :: a, b, c
    integer :: place
    place = ((c - 1) * whole(2) + b - 1) * whole(1) + a
    number = ieor(ishft(place, 11), 7 * place)
  end function

  function numbers_of(start, count) result(numbers)
    integer, intent(in) :: start(3), count(3)
    integer, allocatable :: numbers(:, :, :)
    integer :: a, b, c
    allocate (numbers(count(1), count(2), count(3)))
    do c = 1, count(3)
      do b = 1, count(2)
        do a = 1, count(1)
          numbers(a, b, c) = number(start(1) + a - 1, start(2) + b - 1, start(3) + c - 1)
        end do
      end do
    end do
  end function

  subroutine write_part(name, format)
    character(*), intent(in) :: name
    integer, intent(in) :: format
    integer :: file, variable, dimensions(3), start(3), count(3)
    integer, allocatable :: numbers(:, :, :)
    call part_of(3, rank, ranks, start, count)
    numbers = numbers_of(start, count)
    call mpi_barrier(mpi_comm_world, error)
    seconds = -mpi_wtime()
    call must(nf90_create(name, ior(nf90_clobber, format), file, comm=mpi_comm_world, info=mpi_info_null))
    call must(nf90_def_dim(file, 'a', whole(1), dimensions(1)))
    call must(nf90_def_dim(file, 'b', whole(2), dimensions(2)))
    call must(nf90_def_dim(file, 'c', whole(3), dimensions(3)))
    call must(nf90_def_var(file, 'grid', nf90_int, dimensions, variable))
    call must(nf90_enddef(file))
    call must(nf90_var_par_access(file, variable, nf90_collective))
    call must(nf90_put_var(file, variable, numbers, start=start, count=count))
    call must(nf90_close(file))
    seconds = seconds + mpi_wtime()
  end subroutine

  integer function wrong_in(name, dimension, at, among, alone)
    character(*), intent(in) :: name
    integer, intent(in) :: dimension, at, among
    logical, intent(in) :: alone
    integer :: file, variable, start(3), count(3)
    integer, allocatable :: numbers(:, :, :)
    call part_of(dimension, at, among, start, count)
    allocate (numbers(count(1), count(2), count(3)), source=0)
    if (alone) then
      call must(nf90_open(name, nf90_nowrite, file))
    else
      call must(nf90_open(name, nf90_nowrite, file, comm=mpi_comm_world, info=mpi_info_null))
    end if
    call must(nf90_inq_varid(file, 'grid', variable))
    if (.not. alone) call must(nf90_var_par_access(file, variable, nf90_collective))
    call must(nf90_get_var(file, variable, numbers, start=start, count=count))
    call must(nf90_close(file))
    wrong_in = count_of(numbers /= numbers_of(start, count))
  end function

  pure integer function count_of(mask)
    logical, intent(in) :: mask(:, :, :)
    count_of = count(mask)
  end function

  subroutine must(status)
    integer, intent(in) :: status
    if (status == nf90_noerr) return
    print '("rank ", i0, ": ", a)', rank, trim(nf90_strerror(status))
    call mpi_abort(mpi_comm_world, 1, error)
  end subroutine

end program
