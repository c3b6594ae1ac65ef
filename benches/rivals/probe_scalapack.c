/* Whether there is a ScaLAPACK with which MPI programs link. It tells no version. */
#include <mpi.h>
#include <stdio.h>

extern int numroc_(const int *, const int *, const int *, const int *, const int *);

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, size = 10, block = 4, process = 0, processes = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_right = numroc_(&size, &block, &process, &process, &processes) == size;
    if (rank == 0 && is_right) puts("found");
    MPI_Finalize();
    return !is_right;
}
