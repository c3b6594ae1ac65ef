/* Prints the version of PETSc. */
#include <petsc.h>

int main(int count, char **arguments) {
    char version[256];
    int rank;
    if (PetscInitialize(&count, &arguments, NULL, NULL)) return 1;
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    if (PetscGetVersion(version, sizeof version)) return 1;
    if (rank == 0) puts(version);
    return PetscFinalize() ? 1 : 0;
}
