// Messages of C++ objects through Boost.MPI: what MPI alone cannot send, so that the serialisation,
// the packed messages below it and the order of reductions are all in it. Each part counts what is
// wrong on any rank; the answers follow from the number of ranks alone.
#include <boost/mpi.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

// Objects of a size that differs by rank: no two messages are alike in length.
struct Cell {
    std::string name;
    std::map<int, std::vector<double>> layers;

    template <class Archive> void serialize(Archive &archive, unsigned) { archive & name & layers; }
    bool operator==(const Cell &other) const { return name == other.name && layers == other.layers; }
};

static Cell cell(int rank)
{
    Cell made{"cell " + std::to_string(rank), {}};
    for (int layer = 0; layer <= rank; layer++)
        made.layers[layer] = std::vector<double>(100 * (rank + 1), rank + layer / 8.0);
    return made;
}

static std::string word(int rank) { return "<" + std::to_string(rank) + ">"; }

int main(int count, char **words)
{
    mpi::environment environment(count, words);
    mpi::communicator world;
    const int rank = world.rank(), size = world.size();
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int wrong[4] = {0, 0, 0, 0};

    // around the ring
    Cell got;
    mpi::request sent = world.isend(next, 7, cell(rank));
    world.recv(before, 7, got);
    sent.wait();
    wrong[0] += !(got == cell(before));

    // from one to all
    Cell same = rank == 0 ? cell(size) : Cell();
    mpi::broadcast(world, same, 0);
    wrong[1] += !(same == cell(size));

    // from all to all
    std::vector<Cell> all;
    mpi::all_gather(world, cell(rank), all);
    for (int other = 0; other < size; other++)
        wrong[2] += int(all.size()) != size || !(all[other] == cell(other));

    // Strings put one after another: the result shows the order, from the left and at every rank.
    std::string row, part;
    for (int other = 0; other < size; other++) {
        row += word(other);
        if (other == rank)
            part = row;
    }
    wrong[3] += mpi::all_reduce(world, word(rank), std::plus<std::string>()) != row;
    wrong[3] += mpi::scan(world, word(rank), std::plus<std::string>()) != part;

    int sums[4];
    mpi::reduce(world, wrong, 4, sums, std::plus<int>(), 0);

    // a message of 8 kB of text there and back, as a figure
    const int rounds = 200;
    const std::string text(8192, 'x');
    std::string echo = text;
    world.barrier();
    mpi::timer clock;
    for (int round = 0; round < rounds; round++) {
        mpi::request away = world.isend(next, 8, echo);
        std::string arrived;
        world.recv(before, 8, arrived);
        away.wait();
        echo = arrived;
    }
    const double seconds = clock.elapsed();
    const int last = mpi::all_reduce(world, int(echo != text), std::plus<int>());
    if (rank == 0)
        std::printf("ranks %d, wrong: ring %d, broadcast %d, gather %d, reduce %d, echo %d\n"
                    "string of 8 kB %.3f us\n",
                    size, sums[0], sums[1], sums[2], sums[3], last, 1e6 * seconds / rounds);
    return 0;
}
