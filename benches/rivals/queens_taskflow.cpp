// How many ways there are to place queens on a board so that none attacks another: a task a queen. Arguments: cores, rows of the board.
#include "board.h"
#include "common.h"
#include "taskgroup.hpp"

static int64_t solutions(Board board, Here &here) {
    if (is_full(&board)) return 1;
    uint64_t free = free_columns(&board);
    if (free == 0) return 0;
    int64_t found[64], count = 0;
    Children children(here);
    for (; free != 0; free &= free - 1, count++) {
        Board more = with_queen(&board, free & -free);
        int64_t *result = &found[count];
        children.add([more, result](Here &there) { *result = solutions(more, there); });
    }
    children.wait();
    int64_t sum = 0;
    for (int64_t child = 0; child < count; child++) sum += found[child];
    return sum;
}

int main(int count, char **arguments) {
    tf::Executor executor(argument(count, arguments, 1));
    Board board = {(uint64_t)argument(count, arguments, 2), 0, 0, 0};
    int64_t answer = 0;
    double seconds = 0;
    // The second time counts.
    for (int round = 0; round < 2; round++) {
        double start = now();
        run_all(executor, [board, &answer](Here &here) { answer = solutions(board, here); });
        seconds = now() - start;
    }
    print_outcome(seconds, answer);
}
