/* How many ways there are to place queens on a board so that none attacks another: a task a queen. Arguments: cores, rows of the board. */
#include "board.h"
#include "common.h"
#include <omp.h>

static int64_t solutions(Board board) {
    if (is_full(&board)) return 1;
    int64_t found[64], children = 0;
    for (uint64_t free = free_columns(&board); free != 0; free &= free - 1, children++) {
        Board more = with_queen(&board, free & -free);
        int64_t *result = &found[children];
#pragma omp task firstprivate(more, result)
        *result = solutions(more);
    }
#pragma omp taskwait
    int64_t sum = 0;
    for (int64_t child = 0; child < children; child++) sum += found[child];
    return sum;
}

int main(int count, char **arguments) {
    Board board = {(uint64_t)argument(count, arguments, 2), 0, 0, 0};
    int64_t answer = 0;
    double start = 0, seconds = 0;
#pragma omp parallel num_threads((int)argument(count, arguments, 1))
#pragma omp single
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        start = now();
        answer = solutions(board);
        seconds = now() - start;
    }
    print_outcome(seconds, answer);
    return 0;
}
