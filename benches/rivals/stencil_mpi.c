/* The stencil on message passing: each process has a block of points, and sends its first and last one's stamps to its neighbours after each
 * step. Arguments: cores (the processes), width (at least as many), steps, iterations of a task. */
#include "common.h"
#include <mpi.h>

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int64_t width = argument(count, arguments, 2), steps = argument(count, arguments, 3), iterations = argument(count, arguments, 4);
    int rank, processes;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    int64_t first = rank * width / processes, end = (rank + 1) * width / processes;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right_side = rank + 1 < processes ? rank + 1 : MPI_PROC_NULL;
    Stamp *rows[2] = {(Stamp *)lines(width, sizeof(Stamp)), (Stamp *)lines(width, sizeof(Stamp))};
    Right *right = (Right *)lines(width, sizeof(Right));
    double seconds = 0;
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        for (int64_t point = 0; point < width; point++) right[point].tasks = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        for (int64_t step = 0; step < steps; step++) {
            Stamp *before = rows[(step + 1) % 2], *after = rows[step % 2];
            if (step > 0) {
                /* Two numbers to each side. Whoever has no neighbour there sends nothing. */
                MPI_Request requests[4];
                int64_t before_first = first > 0 ? first - 1 : 0, after_last = end < width ? end : width - 1;
                MPI_Irecv(&before[before_first], 2, MPI_INT64_T, left, 0, MPI_COMM_WORLD, &requests[0]);
                MPI_Irecv(&before[after_last], 2, MPI_INT64_T, right_side, 0, MPI_COMM_WORLD, &requests[1]);
                MPI_Isend(&before[first], 2, MPI_INT64_T, left, 0, MPI_COMM_WORLD, &requests[2]);
                MPI_Isend(&before[end - 1], 2, MPI_INT64_T, right_side, 0, MPI_COMM_WORLD, &requests[3]);
                MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
            }
            for (int64_t point = first; point < end; point++) stencil_task(step, point, width, iterations, before, after, right);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = now() - start;
    }
    int64_t mine = tasks_with_right_inputs(right, width), all = 0;
    MPI_Reduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) print_outcome(seconds, all);
    return MPI_Finalize();
}
