! OASIS3-MCT: strips of rows to strips of columns by a file of weights; started by couplers.sh
program oasis_exchange
  use mod_oasis
  implicit none
  include 'mpif.h'
  character(len=6) :: name
  character(len=16) :: word
  integer :: comp, comm, part, var, err, me, p, world, side, rounds, first, last, k, n, dims(2), info
  integer, allocatable :: paral(:)
  integer :: shape(2)
  real(8), allocatable :: field(:), times(:)
  real(8) :: start, setup, took

  call get_command_argument(1, name)
  call get_command_argument(2, word); read(word, *) side
  call get_command_argument(3, word); read(word, *) rounds
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, world, err)
  call MPI_Barrier(MPI_COMM_WORLD, err)
  start = MPI_Wtime()
  call oasis_init_comp(comp, name, err)
  call oasis_get_localcomm(comm, err)
  call MPI_Comm_rank(comm, me, err)
  call MPI_Comm_size(comm, p, err)
  first = side * me / p
  last = side * (me + 1) / p
  if (name == 'source') then
    paral = [1, first * side, (last - first) * side]
  else
    paral = [2, first, last - first, side, side]
  end if
  n = (last - first) * side
  call oasis_def_partition(part, paral, err)
  dims = [1, 1]
  shape = [1, n]
  if (name == 'source') then
    call oasis_def_var(var, 'FSEND', part, dims, OASIS_Out, shape, OASIS_Real, err)
  else
    call oasis_def_var(var, 'FRECV', part, dims, OASIS_In, shape, OASIS_Real, err)
  end if
  call oasis_enddef(err)
  call MPI_Barrier(MPI_COMM_WORLD, err)
  setup = MPI_Wtime() - start
  allocate(field(n), times(rounds))
  if (name == 'source') field = [(sin((first * side + k) * 0.001d0) + (first * side + k) * 1d-6, k = 0, n - 1)]
  do k = 1, rounds
    call MPI_Barrier(MPI_COMM_WORLD, err)
    start = MPI_Wtime()
    if (name == 'source') then
      call oasis_put(var, k - 1, field, info)
    else
      call oasis_get(var, k - 1, field, info)
    end if
    took = MPI_Wtime() - start
    call MPI_Allreduce(took, times(k), 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, err)
  end do
  if (name == 'target') then
    write(word, '("got_",i0)') me
    open(9, file=trim(word), access='stream', form='unformatted', status='replace')
    write(9) field
    close(9)
  else if (me == 0) then
    open(9, file='times', status='replace')
    write(9, *) setup, times
    close(9)
  end if
  call oasis_terminate(err)
  call MPI_Finalize(err)
end program
