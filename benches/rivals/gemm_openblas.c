/* A product of matrices by OpenBLAS, in turns. Arguments: cores, size, bits of an element (32 or 64). */
#include "common.h"
#include "elements.h"
#include <cblas.h>

extern void openblas_set_num_threads(int);

static void *matrix(int64_t size, int64_t bits) {
    void *elements = aligned_alloc(4096, (size_t)(size * size * bits / 8 + 4095) / 4096 * 4096);
    if (!elements) abort();
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++) {
            int64_t value = factor(0, i) * factor(1, j);
            if (bits == 32) ((float *)elements)[i * size + j] = (float)value;
            else ((double *)elements)[i * size + j] = (double)value;
        }
    return elements;
}

int main(int count, char **arguments) {
    int64_t cores = argument(count, arguments, 1), size = argument(count, arguments, 2), bits = argument(count, arguments, 3);
    openblas_set_num_threads((int)cores);
    void *a = matrix(size, bits), *b = matrix(size, bits), *c = matrix(size, bits);
    int n = (int)size;
    /* The first time is not measured. */
    for (int is_first = 1; is_first || is_my_turn(); is_first = 0) {
        double start = now();
        if (bits == 32) cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, b, n, c, n, 0, a, n);
        else cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, b, n, c, n, 0, a, n);
        double seconds = now() - start, sum = 0;
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j < size; j++)
                sum += (double)(weight(i) * weight(j)) * (bits == 32 ? ((float *)a)[i * size + j] : ((double *)a)[i * size + j]);
        if (is_first) print_ready();
        else print_turn(seconds, (int64_t)sum);
    }
    return 0;
}
