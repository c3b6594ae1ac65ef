/* What the rivals' programs have in common: arguments, time, the outcome; and of the stencil, what a task does.
 *
 * A program's first argument is the number of cores; its others say how much to do. It prints the seconds that the part that counts took, and
 * the answer. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline int64_t argument(int count, char **arguments, int which) {
    if (which >= count) {
        fprintf(stderr, "argument %d is missing\n", which);
        exit(2);
    }
    return atoll(arguments[which]);
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void print_outcome(double seconds, int64_t answer) {
    printf("%.9f %lld\n", seconds, (long long)answer);
}

/* For programs that are run in turns: waits until it is this one's turn. Each line of the input is one; 0 when there will be no more. */
static inline int is_my_turn(void) {
    char line[16];
    return fgets(line, sizeof line, stdin) != NULL;
}

/* Says that all is ready for the first turn. */
static inline void print_ready(void) {
    puts("ready");
    fflush(stdout);
}

/* The outcome of a turn. */
static inline void print_turn(double seconds, int64_t answer) {
    print_outcome(seconds, answer);
    fflush(stdout);
}

/* The work of Task Bench's kernel compute_bound: each of 64 lanes is squared and added to itself, over and over. Written with vectors of the size
 * of the widest registers; compilers split them where registers are smaller. */
typedef double Lanes __attribute__((vector_size(64)));

static inline void square_and_add(int64_t iterations) {
    Lanes a, b, c, d, e, f, g, h;
    for (int lane = 0; lane < 8; lane++) {
        a[lane] = -(lane + 1) / 65.0, b[lane] = -(lane + 9) / 65.0, c[lane] = -(lane + 17) / 65.0, d[lane] = -(lane + 25) / 65.0;
        e[lane] = -(lane + 33) / 65.0, f[lane] = -(lane + 41) / 65.0, g[lane] = -(lane + 49) / 65.0, h[lane] = -(lane + 57) / 65.0;
    }
    for (int64_t i = 0; i < iterations; i++) {
        a = a * a + a, b = b * b + b, c = c * c + c, d = d * d + d;
        e = e * e + e, f = f * f + f, g = g * g + g, h = h * h + h;
    }
    Lanes sums = a + b + c + d + e + f + g + h;
    double sum = 0;
    for (int lane = 0; lane < 8; lane++) sum += sums[lane];
    /* So that the compiler believes that somebody wants the result. */
    __asm__ volatile("" : : "r"(&sum) : "memory");
}

/* What a task of the stencil leaves for others to read, alone in its cache line. */
typedef struct {
    int64_t step, point;
} __attribute__((aligned(64))) Stamp;

/* How many tasks of a point had the right inputs, alone in its cache line. Tasks of a point come one after the other. */
typedef struct {
    int64_t tasks;
} __attribute__((aligned(64))) Right;

static inline int is_stamp(const Stamp *stamp, int64_t step, int64_t point) {
    return stamp->step == step && stamp->point == point;
}

/* A task of the stencil: checks what its point and the points beside it left in the step before, computes, and leaves its own stamp. */
static inline void stencil_task(int64_t step, int64_t point, int64_t width, int64_t iterations, const Stamp *before, Stamp *after,
                                Right *right) {
    int is_right = 1;
    if (step > 0) {
        int64_t last = point + 1 < width ? point + 1 : point;
        for (int64_t source = point > 0 ? point - 1 : point; source <= last; source++) is_right &= is_stamp(&before[source], step - 1, source);
    }
    if (iterations > 0) square_and_add(iterations);
    after[point].step = step;
    after[point].point = point;
    right[point].tasks += is_right;
}

/* Zeroed memory for so many elements, in cache lines of its own. */
static inline void *lines(int64_t count, size_t size) {
    char *memory = (char *)aligned_alloc(64, (size_t)count * size);
    if (!memory) abort();
    for (size_t byte = 0; byte < (size_t)count * size; byte++) memory[byte] = 0;
    return memory;
}

static inline int64_t tasks_with_right_inputs(const Right *right, int64_t width) {
    int64_t tasks = 0;
    for (int64_t point = 0; point < width; point++) tasks += right[point].tasks;
    return tasks;
}

#endif
