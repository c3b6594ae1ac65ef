/* The stencil as an OpenMP loop over each step, with a barrier after it. Arguments: cores, width, steps, iterations of a task. */
#include "common.h"
#include <omp.h>

int main(int count, char **arguments) {
    int cores = (int)argument(count, arguments, 1);
    int64_t width = argument(count, arguments, 2), steps = argument(count, arguments, 3), iterations = argument(count, arguments, 4);
    Stamp *rows[2] = {(Stamp *)lines(width, sizeof(Stamp)), (Stamp *)lines(width, sizeof(Stamp))};
    Right *right = (Right *)lines(width, sizeof(Right));
    double start = 0, seconds = 0;
#pragma omp parallel num_threads(cores)
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
#pragma omp single
        {
            for (int64_t point = 0; point < width; point++) right[point].tasks = 0;
            start = now();
        }
        for (int64_t step = 0; step < steps; step++) {
#pragma omp for schedule(static)
            for (int64_t point = 0; point < width; point++)
                stencil_task(step, point, width, iterations, rows[(step + 1) % 2], rows[step % 2], right);
        }
#pragma omp single
        seconds = now() - start;
    }
    print_outcome(seconds, tasks_with_right_inputs(right, width));
    return 0;
}
