! ScaLAPACK: a linear system by pdgesv, judged by its scaled residual and its known solution, and
! eigenvalues by pdsyev, which are known in closed form. Matrices follow from their indices alone, so
! each rank makes its own part, and no part of the library is asked whether the answer is right.
program scalapack_solve
  use mpi
  implicit none
  integer, parameter :: dp = kind(1d0), n = 500, block = 32, half = 160
  integer :: context, rows, columns, row, column, rank, ranks, error
  integer :: numroc
  real(dp) :: pdlamch
  external :: numroc, pdlamch

  call mpi_init(error)
  call blacs_pinfo(rank, ranks)
  rows = int(sqrt(real(ranks)))
  do while (mod(ranks, rows) /= 0)
    rows = rows - 1
  end do
  columns = ranks / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'Row', rows, columns)
  call blacs_gridinfo(context, rows, columns, row, column)
  if (rank == 0) print '("grid of ", i0, " x ", i0, " of ", i0, " ranks")', rows, columns, ranks
  call solve()
  call eigenvalues()
  call blacs_gridexit(context)
  call blacs_exit(1)
  call mpi_finalize(error)

contains

  ! Entries between -1/2 and 1/2 without pattern, as a matrix of chance has. (A sawtooth of i and j
  ! would do for a residual, but such a matrix is almost singular.)
  elemental real(dp) function noise(i, j)
    integer, intent(in) :: i, j
    integer(selected_int_kind(18)), parameter :: mask = 4294967295_8
    integer(selected_int_kind(18)) :: state
    integer :: turn
    state = 40503_8 * i + j + 12345
    do turn = 1, 3
      state = ieor(state, iand(ishft(state, 13), mask))
      state = ieor(state, ishft(state, -17))
      state = iand(ieor(state, ishft(state, 5)), mask)
      state = iand(69069 * state + turn, mask)
    end do
    noise = real(state, dp) / 4294967296._dp - 0.5_dp
  end function

  ! The row of the whole matrix times the solution, which is column 0 of the noise.
  pure real(dp) function right(i)
    integer, intent(in) :: i
    integer :: j
    right = sum([(noise(i, j) * noise(j, 0), j=1, n)])
  end function

  ! The index in the whole matrix of index `mine` on the process `at` of `among`.
  elemental integer function global(mine, at, among)
    integer, intent(in) :: mine, at, among
    global = ((mine - 1) / block * among + at) * block + modulo(mine - 1, block) + 1
  end function

  subroutine describe(size, width, descriptor, high, wide)
    integer, intent(in) :: size, width
    integer, intent(out) :: descriptor(9), high, wide
    high = numroc(size, block, row, 0, rows)
    wide = numroc(width, block, column, 0, columns)
    call descinit(descriptor, size, width, block, block, 0, 0, context, max(1, high), error)
  end subroutine

  subroutine solve()
    real(dp), allocatable :: a(:, :), b(:, :)
    real(dp) :: x(n), rest(n), sums(n), scale, seconds
    integer, allocatable :: pivots(:)
    integer :: of_a(9), of_b(9), high, wide, wide_b, i, j, info
    call describe(n, n, of_a, high, wide)
    allocate (a(max(1, high), max(1, wide)), pivots(high + block))
    do j = 1, wide
      do i = 1, high
        a(i, j) = noise(global(i, row, rows), global(j, column, columns))
      end do
    end do
    call describe(n, 1, of_b, high, wide_b)
    allocate (b(max(1, high), 1))
    b(:high, 1) = [(right(global(i, row, rows)), i=1, high)]
    call mpi_barrier(mpi_comm_world, error)
    seconds = -mpi_wtime()
    call pdgesv(n, 1, a, 1, 1, of_a, pivots, b, 1, 1, of_b, info)
    seconds = seconds + mpi_wtime()
    ! the whole x on every rank, from those in the first column of the grid, which hold it
    sums = 0
    if (wide_b > 0) sums([(global(i, row, rows), i=1, high)]) = b(:high, 1)
    call mpi_allreduce(sums, x, n, mpi_double_precision, mpi_sum, mpi_comm_world, error)
    rest = [(dot_product(noise(i, [(j, j=1, n)]), x) - right(i), i=1, n)]
    ! ScaLAPACK's own measure; pdlamch asks all ranks
    scale = maxval([(sum(abs(noise(i, [(j, j=1, n)]))), i=1, n)]) * maxval(abs(x)) * pdlamch(context, 'eps') * n
    if (rank == 0) print '("pdgesv ", i0, ": info ", i0, ", scaled residual ", es12.5, ", solution off by ", ' // &
      'es12.5, "; ", es9.3, " s")', n, info, maxval(abs(rest)) / scale, maxval(abs(x - noise([(j, j=1, n)], 0))), seconds
  end subroutine

  ! Of the second difference of `half` points the eigenvalues are 2 - 2 cos(k pi / (half + 1)).
  subroutine eigenvalues()
    real(dp), allocatable :: a(:, :), z(:, :), work(:)
    real(dp) :: values(half), wanted(half), size_of_work(1)
    integer :: of_a(9), high, wide, i, j, info
    call describe(half, half, of_a, high, wide)
    allocate (a(max(1, high), max(1, wide)), z(max(1, high), max(1, wide)))
    do j = 1, wide
      do i = 1, high
        a(i, j) = max(0, 2 - 3 * abs(global(i, row, rows) - global(j, column, columns)))
        if (abs(global(i, row, rows) - global(j, column, columns)) == 1) a(i, j) = -1
      end do
    end do
    call pdsyev('V', 'U', half, a, 1, 1, of_a, values, z, 1, 1, of_a, size_of_work, -1, info)
    allocate (work(int(size_of_work(1)) + 1))
    call pdsyev('V', 'U', half, a, 1, 1, of_a, values, z, 1, 1, of_a, work, size(work), info)
    wanted = [(2 - 2 * cos(acos(-1._dp) * j / (half + 1)), j=1, half)]
    if (rank == 0) print '("pdsyev ", i0, ": info ", i0, ", eigenvalues off by ", es12.5)', half, info, &
      maxval(abs(values - wanted))
  end subroutine

end program
