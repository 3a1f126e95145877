// hello.c in C++: what arrives goes through a container of the C++ library, and MPI's own C++ interface is not used.
#include <mpi.h>
#include <iostream>
#include <sstream>
#include <vector>

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 0) {
        const std::vector<int> words(1, 1000 + rank);
        MPI_Send(words.data(), 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else {
        for (int peer = 1; peer < size; peer++) {
            std::vector<int> words(1);
            std::ostringstream line;
            MPI_Recv(words.data(), 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            line << "C++ heard " << words.front() << " from " << peer << " of " << size << "\n";
            std::cout << line.str();
        }
    }
    MPI_Finalize();
    return 0;
}
