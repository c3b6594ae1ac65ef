/* How fast memory is copied and read, in turns. Arguments: cores, elements, what: 0 copies an array, 1 is the dot product of two, 2 the sum of one. The
 * answer of the first is how many elements of the copy are right. */
#include "common.h"
#include <sys/mman.h>

static double *array(int64_t count) {
    size_t bytes = ((size_t)count * 8 + (2 << 20) - 1) / (2 << 20) * (2 << 20);
    double *elements = (double *)aligned_alloc(2 << 20, bytes);
    if (!elements) abort();
    madvise(elements, bytes, MADV_HUGEPAGE);
    /* Touched first by whoever will use it. */
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) elements[i] = (double)(1 + i % 3);
    return elements;
}

int main(int count, char **arguments) {
    int64_t elements = argument(count, arguments, 2), what = argument(count, arguments, 3);
    double *restrict a = array(elements), *restrict b = what == 2 ? a : array(elements);
    /* The first time is not measured. */
    for (int is_first = 1; is_first || is_my_turn(); is_first = 0) {
        double start = now(), sum = 0;
        if (what == 0) {
#pragma omp parallel for simd schedule(static)
            for (int64_t i = 0; i < elements; i++) b[i] = a[i];
        } else if (what == 1) {
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
            for (int64_t i = 0; i < elements; i++) sum += a[i] * b[i];
        } else {
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
            for (int64_t i = 0; i < elements; i++) sum += a[i];
        }
        double seconds = now() - start;
        if (what == 0)
            for (int64_t i = 0; i < elements; i++) sum += b[i] == (double)(1 + i % 3);
        if (is_first) print_ready();
        else print_turn(seconds, (int64_t)sum);
    }
    return 0;
}
