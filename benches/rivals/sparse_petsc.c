/* Computations with sparse matrices by PETSc, in turns. Arguments: cores, the kernel, and the folder of the data. Each process has a block of rows, as PETSc
 * divides them. */
#include "common.h"
#include "turns_mpi.h"
#include <petsc.h>
#include <string.h>

static const char *folder;

static void check(PetscErrorCode code) {
    if (code) MPI_Abort(PETSC_COMM_WORLD, code);
}

/* Elements from `first` on of a file of numbers. */
static void *numbers(const char *name, size_t size, int64_t first, int64_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    void *found = malloc((size_t)(count ? count : 1) * size);
    if (!file || !found || fseek(file, (long)(first * (int64_t)size), SEEK_SET)) abort();
    if (fread(found, size, (size_t)count, file) != (size_t)count) abort();
    fclose(file);
    return found;
}

static Mat matrix(const char *name, int rows) {
    char file[64];
    PetscInt own = PETSC_DECIDE, all = rows, low = 0;
    check(PetscSplitOwnership(PETSC_COMM_WORLD, &own, &all));
    MPI_Exscan(&own, &low, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD);
    snprintf(file, sizeof file, "%s.pos", name);
    int *pos = (int *)numbers(file, sizeof(int), low, own + 1), first = pos[0];
    int64_t entries = pos[own] - first;
    for (int row = 0; row <= own; row++) pos[row] -= first;
    snprintf(file, sizeof file, "%s.crd", name);
    int *crd = (int *)numbers(file, sizeof(int), first, entries);
    snprintf(file, sizeof file, "%s.values", name);
    double *values = (double *)numbers(file, sizeof(double), first, entries);
    Mat made;
    check(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, own, own, rows, rows, pos, crd, values, &made));
    free(pos), free(crd), free(values);
    return made;
}

int main(int count, char **arguments) {
    if (PetscInitialize(&count, &arguments, NULL, NULL)) return 1;
    const char *kernel = arguments[2];
    folder = arguments[3];
    int rank, *extents = (int *)numbers("extents", sizeof(int), 0, 1), rows = extents[0];
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    const int is_vector = !strcmp(kernel, "spmv"), is_sum = !strcmp(kernel, "spadd3");
    const PetscInt columns = is_vector || is_sum ? 1 : atoi(kernel + 4);
    Mat a = matrix("A", rows), b = NULL, c = NULL, x = NULL, y = NULL, sum = NULL;
    Vec in = NULL, out = NULL;
    PetscInt low, high;
    check(MatGetOwnershipRange(a, &low, &high));
    if (is_vector) {
        check(MatCreateVecs(a, &in, &out));
        PetscScalar *elements;
        check(VecGetArray(in, &elements));
        for (PetscInt row = low; row < high; row++) elements[row - low] = (double)(row % 5) + 1.0;
        check(VecRestoreArray(in, &elements));
    } else if (is_sum) {
        b = matrix("B", rows), c = matrix("C", rows);
    } else {
        check(MatCreateDense(PETSC_COMM_WORLD, high - low, PETSC_DECIDE, rows, columns, NULL, &x));
        PetscScalar *elements;
        check(MatDenseGetArray(x, &elements));
        for (PetscInt column = 0; column < columns; column++)
            for (PetscInt row = low; row < high; row++)
                elements[column * (high - low) + row - low] = (double)(((int64_t)row * columns + column) % 5) + 1.0;
        check(MatDenseRestoreArray(x, &elements));
        check(MatAssemblyBegin(x, MAT_FINAL_ASSEMBLY));
        check(MatAssemblyEnd(x, MAT_FINAL_ASSEMBLY));
        check(MatMatMult(a, x, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &y));
    }
    /* The first time is not measured. */
    for (int is_first = 1; is_first || is_our_turn(rank); is_first = 0) {
        MPI_Barrier(PETSC_COMM_WORLD);
        double start = now();
        if (is_vector) {
            check(MatMult(a, in, out));
        } else if (is_sum) {
            check(MatDuplicate(a, MAT_COPY_VALUES, &sum));
            check(MatAXPY(sum, 1.0, b, DIFFERENT_NONZERO_PATTERN));
            check(MatAXPY(sum, 1.0, c, DIFFERENT_NONZERO_PATTERN));
        } else {
            check(MatMatMult(a, x, MAT_REUSE_MATRIX, PETSC_DEFAULT, &y));
        }
        MPI_Barrier(PETSC_COMM_WORLD);
        double seconds = now() - start, mine = 0, all = 0;
        if (is_vector) {
            const PetscScalar *elements;
            check(VecGetArrayRead(out, &elements));
            for (PetscInt row = low; row < high; row++) mine += elements[row - low] * (double)(row % 5 + 1);
            check(VecRestoreArrayRead(out, &elements));
        } else if (is_sum) {
            for (PetscInt row = low; row < high; row++) {
                PetscInt length;
                const PetscInt *at;
                const PetscScalar *elements;
                check(MatGetRow(sum, row, &length, &at, &elements));
                for (PetscInt entry = 0; entry < length; entry++)
                    mine += elements[entry] * (double)((row + 3 * (int64_t)at[entry]) % 5 + 1);
                check(MatRestoreRow(sum, row, &length, &at, &elements));
            }
            check(MatDestroy(&sum));
        } else {
            const PetscScalar *elements;
            check(MatDenseGetArrayRead(y, &elements));
            for (PetscInt column = 0; column < columns; column++)
                for (PetscInt row = low; row < high; row++)
                    mine += elements[column * (high - low) + row - low] * (double)((row + 3 * column) % 5 + 1);
            check(MatDenseRestoreArrayRead(y, &elements));
        }
        MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD);
        if (rank) continue;
        if (is_first) print_ready();
        else print_turn(seconds, (int64_t)all);
    }
    return PetscFinalize() ? 1 : 0;
}
