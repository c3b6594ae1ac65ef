/* Which MPI there is. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    if (rank == 0) printf("%s\n", version);
    return MPI_Finalize();
}
