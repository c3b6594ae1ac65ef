/* Tasks each of which comes after the one before, and counts only if it is its turn. Arguments: cores, how many. */
#include "common.h"
#include <omp.h>

int main(int count, char **arguments) {
    int64_t links = argument(count, arguments, 2), ran = 0;
    double start = 0, seconds = 0;
#pragma omp parallel num_threads((int)argument(count, arguments, 1))
#pragma omp single
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        ran = 0;
        start = now();
        for (int64_t i = 0; i < links; i++) {
#pragma omp task shared(ran) firstprivate(i) depend(inout : ran)
            ran += ran == i;
        }
#pragma omp taskwait
        seconds = now() - start;
    }
    print_outcome(seconds, ran);
    return 0;
}
