/* A sparse matrix times a vector as one would write it by hand, or reading as many bytes as that must, in turns. Arguments: cores, `spmv` or `dot`, and the
 * folder of the data. */
#include "common.h"
#include <string.h>
#include <sys/mman.h>

static const char *folder;
static int64_t read_bytes;

static void *in_large_pages(size_t bytes) {
    size_t whole = (bytes + (2 << 20)) / (2 << 20) * (2 << 20);
    void *memory = aligned_alloc(2 << 20, whole);
    if (!memory) abort();
    madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

static void *numbers(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) abort();
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    void *found = in_large_pages(bytes);
    if (fread(found, 1, bytes, file) != bytes) abort();
    fclose(file);
    read_bytes += (int64_t)bytes;
    return found;
}

static double by_hand(int rows, const int *pos, const int *crd, const double *values, const double *x, double *y) {
    double start = now();
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int at = pos[row]; at < pos[row + 1]; at++) sum += values[at] * x[crd[at]];
        y[row] = sum;
    }
    return now() - start;
}

static double dot(int64_t count, const double *a, const double *b) {
    double start = now(), sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (int64_t at = 0; at < count; at++) sum += a[at] * b[at];
    __asm__ volatile("" : : "r"(&sum) : "memory");
    return now() - start;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    folder = arguments[3];
    int rows = ((int *)numbers("extents"))[0], is_dot = !strcmp(arguments[2], "dot");
    int *pos = (int *)numbers("A.pos"), *crd = (int *)numbers("A.crd");
    double *values = (double *)numbers("A.values");
    double *x = (double *)in_large_pages((size_t)rows * 8), *y = (double *)in_large_pages((size_t)rows * 8);
    for (int row = 0; row < rows; row++) x[row] = row % 5 + 1.0;
    /* The operands, and the vectors once. */
    int64_t half = (read_bytes + 16 * (int64_t)rows) / 16;
    double *a = is_dot ? (double *)in_large_pages((size_t)half * 8) : NULL, *b = is_dot ? (double *)in_large_pages((size_t)half * 8) : NULL;
    for (int64_t at = 0; is_dot && at < half; at++) a[at] = b[at] = 1.0;
    for (int is_first = 1; is_first || is_my_turn(); is_first = 0) {
        double seconds = is_dot ? dot(half, a, b) : by_hand(rows, pos, crd, values, x, y), sum = 0;
        for (int row = 0; !is_dot && row < rows; row++) sum += y[row] * (row % 5 + 1);
        if (is_first) print_ready();
        else print_turn(seconds, (int64_t)sum);
    }
    return 0;
}
