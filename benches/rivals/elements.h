/* What tensors hold: elements are products of a small number for each index. And the sum of all elements of a result with their weights, which is the answer. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include <stdint.h>

static inline int64_t factor(int dimension, int64_t index) {
    static const int64_t period[] = {2, 3, 2, 3};
    return 1 + index % period[dimension];
}

static inline int64_t weight(int64_t index) { return 1 + index % 5; }

#endif
