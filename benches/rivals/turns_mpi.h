/* Turns of programs on several processes of MPI. */
#ifndef TURNS_MPI_H
#define TURNS_MPI_H

#include "common.h"
#include <mpi.h>
#include <unistd.h>

/* Rank 0 waits for its turn, and the others for rank 0 without taking its core. */
static inline int is_our_turn(int rank) {
    int is_turn = rank == 0 ? is_my_turn() : 0, is_done = 0;
    MPI_Request request;
    MPI_Ibcast(&is_turn, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (is_done) return is_turn;
        usleep(500);
    }
}

#endif
