"""Whether programs linked to one MPI run with another: soname, symbols and constants decide."""
