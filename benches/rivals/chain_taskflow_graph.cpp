// Tasks each of which comes after the one before, and counts only if it is its turn, as a graph that is built before time counts. Arguments: cores, how many.
#include "common.h"
#include <taskflow/taskflow.hpp>

int main(int count, char **arguments) {
    int64_t links = argument(count, arguments, 2), ran = 0;
    tf::Executor executor(argument(count, arguments, 1));
    tf::Taskflow graph;
    tf::Task last;
    for (int64_t i = 0; i < links; i++) {
        tf::Task next = graph.emplace([&ran, i] { ran += ran == i; });
        if (i > 0) last.precede(next);
        last = next;
    }
    double seconds = 0;
    // The second time counts.
    for (int round = 0; round < 2; round++) {
        ran = 0;
        double start = now();
        executor.run(graph).wait();
        seconds = now() - start;
    }
    print_outcome(seconds, ran);
}
