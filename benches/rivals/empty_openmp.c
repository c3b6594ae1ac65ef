/* Tasks that do nothing, all made by one thread. Arguments: cores, how many. */
#include "common.h"
#include <omp.h>

int main(int count, char **arguments) {
    int64_t tasks = argument(count, arguments, 2), ran = 0;
    double start = 0, seconds = 0;
#pragma omp parallel num_threads((int)argument(count, arguments, 1))
#pragma omp single
    {
        /* The first time they count themselves; the second time counts. */
        for (int64_t i = 0; i < tasks; i++) {
#pragma omp task shared(ran)
#pragma omp atomic
            ran++;
        }
#pragma omp taskwait
        start = now();
        for (int64_t i = 0; i < tasks; i++) {
#pragma omp task
            __asm__ volatile("");
        }
#pragma omp taskwait
        seconds = now() - start;
    }
    print_outcome(seconds, ran);
    return 0;
}
