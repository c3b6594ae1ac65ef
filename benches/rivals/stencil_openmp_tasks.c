/* The stencil as OpenMP tasks that one thread makes. Arguments: cores, width (at least 2), steps, iterations of a task. */
#include "common.h"
#include <omp.h>

int main(int count, char **arguments) {
    int cores = (int)argument(count, arguments, 1);
    int64_t width = argument(count, arguments, 2), steps = argument(count, arguments, 3), iterations = argument(count, arguments, 4);
    Stamp *rows[2] = {(Stamp *)lines(width, sizeof(Stamp)), (Stamp *)lines(width, sizeof(Stamp))};
    Right *right = (Right *)lines(width, sizeof(Right));
    /* With more than 64 tasks a thread in line, GNU's library has the thread that makes them wait for each new one, and all come one after the other. */
    int64_t steps_in_line = 16 * cores > width ? 16 * cores / width : 1;
    double seconds = 0;
#pragma omp parallel num_threads(cores)
#pragma omp single
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        for (int64_t point = 0; point < width; point++) right[point].tasks = 0;
        double start = now();
        for (int64_t step = 0; step < steps; step++) {
            Stamp *before = rows[(step + 1) % 2], *after = rows[step % 2];
            /* A clause for each kind of point: an iterator over what a point depends on takes the library longer. */
#pragma omp task firstprivate(step, before, after) depend(in : before[0], before[1]) depend(out : after[0])
            stencil_task(step, 0, width, iterations, before, after, right);
            for (int64_t point = 1; point < width - 1; point++) {
#pragma omp task firstprivate(step, point, before, after) depend(in : before[point - 1], before[point], before[point + 1]) depend(out : after[point])
                stencil_task(step, point, width, iterations, before, after, right);
            }
#pragma omp task firstprivate(step, before, after) depend(in : before[width - 2], before[width - 1]) depend(out : after[width - 1])
            stencil_task(step, width - 1, width, iterations, before, after, right);
            if (step % steps_in_line == 0) {
#pragma omp taskwait
            }
        }
#pragma omp taskwait
        seconds = now() - start;
    }
    print_outcome(seconds, tasks_with_right_inputs(right, width));
    return 0;
}
