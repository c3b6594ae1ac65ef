/* A product of matrices by ScaLAPACK's pdgemm, in turns. Arguments: cores, rows and columns of the grid of processes, size, side of a block of the cyclic
 * distribution. */
#include "common.h"
#include "turns_mpi.h"
#include "elements.h"
#include <mpi.h>

extern void Cblacs_get(int, int, int *);
extern void Cblacs_gridinit(int *, const char *, int, int);
extern void Cblacs_gridinfo(int, int *, int *, int *, int *);
extern int numroc_(const int *, const int *, const int *, const int *, const int *);
extern void descinit_(int *, const int *, const int *, const int *, const int *, const int *, const int *, const int *, const int *, int *);
extern void pdgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *, const int *,
                    const int *, const double *, const int *, const int *, const int *, const double *, double *, const int *, const int *, const int *);

/* Which row or column of the matrix is number `local` of those that process `own` of so many has. */
static int64_t global(int64_t local, int block, int own, int processes) { return (local / block * processes + own) * block + local % block; }

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int grid_rows = (int)argument(count, arguments, 2), grid_columns = (int)argument(count, arguments, 3);
    int size = (int)argument(count, arguments, 4), block = (int)argument(count, arguments, 5);
    int rank, grid, row, column, zero = 0, one = 1, failed;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Cblacs_get(-1, 0, &grid);
    Cblacs_gridinit(&grid, "Row", grid_rows, grid_columns);
    Cblacs_gridinfo(grid, &grid_rows, &grid_columns, &row, &column);
    int rows = numroc_(&size, &block, &row, &zero, &grid_rows), columns = numroc_(&size, &block, &column, &zero, &grid_columns);
    int leading = rows > 1 ? rows : 1, described[9];
    descinit_(described, &size, &size, &block, &block, &zero, &zero, &grid, &leading, &failed);
    if (failed) abort();
    size_t bytes = (size_t)leading * (size_t)(columns > 1 ? columns : 1) * sizeof(double);
    double *a = (double *)malloc(bytes), *b = (double *)malloc(bytes), *c = (double *)malloc(bytes);
    if (!a || !b || !c) abort();
    /* Columns are contiguous here. */
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            int64_t value = factor(0, global(i, block, row, grid_rows)) * factor(1, global(j, block, column, grid_columns));
            a[j * leading + i] = 0, b[j * leading + i] = c[j * leading + i] = (double)value;
        }
    double alpha = 1, beta = 0;
    /* The first time is not measured. */
    for (int is_first = 1; is_first || is_our_turn(rank); is_first = 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        pdgemm_("N", "N", &size, &size, &size, &alpha, b, &one, &one, described, c, &one, &one, described, &beta, a, &one, &one, described);
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = now() - start, mine = 0, all = 0;
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++)
                mine += (double)(weight(global(i, block, row, grid_rows)) * weight(global(j, block, column, grid_columns))) * a[j * leading + i];
        MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0 && is_first) print_ready();
        else if (rank == 0) print_turn(seconds, (int64_t)all);
    }
    return MPI_Finalize();
}
