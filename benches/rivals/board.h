/* A chess board with queens on its first rows. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* The columns that have a queen, and those of the next row that are attacked along either diagonal, a bit each. */
typedef struct {
    uint64_t size, columns, left, right;
} Board;

/* The columns of the next row where a queen can stand. */
static inline uint64_t free_columns(const Board *board) {
    return ((UINT64_C(1) << board->size) - 1) & ~(board->columns | board->left | board->right);
}

/* With one more queen, in a column that is given by its bit. */
static inline Board with_queen(const Board *board, uint64_t column) {
    Board more = {board->size, board->columns | column, (board->left | column) << 1, (board->right | column) >> 1};
    return more;
}

static inline int is_full(const Board *board) { return board->columns == (UINT64_C(1) << board->size) - 1; }

#endif
