// Prints the version of Trilinos.
#include <Tpetra_Core.hpp>
#include <Tpetra_Version.hpp>
#include <cstdio>
#include <mpi.h>

int main(int count, char **arguments) {
    Tpetra::ScopeGuard scope(&count, &arguments);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::puts(Tpetra::version().c_str());
    return 0;
}
