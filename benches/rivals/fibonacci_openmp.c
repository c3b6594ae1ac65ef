/* Fibonacci numbers by their definition, a task a call. Arguments: cores, which number. */
#include "common.h"
#include <omp.h>

static int64_t fibonacci(int64_t n) {
    if (n < 2) return n;
    int64_t left, right;
#pragma omp task shared(left) firstprivate(n)
    left = fibonacci(n - 1);
    right = fibonacci(n - 2);
#pragma omp taskwait
    return left + right;
}

int main(int count, char **arguments) {
    int64_t n = argument(count, arguments, 2), answer = 0;
    double start = 0, seconds = 0;
#pragma omp parallel num_threads((int)argument(count, arguments, 1))
#pragma omp single
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        start = now();
        answer = fibonacci(n);
        seconds = now() - start;
    }
    print_outcome(seconds, answer);
    return 0;
}
