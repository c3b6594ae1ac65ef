// Tasks each of which comes after the one before, and counts only if it is its turn, made one by one. Arguments: cores, how many.
#include "common.h"
#include <taskflow/taskflow.hpp>

int main(int count, char **arguments) {
    int64_t links = argument(count, arguments, 2), ran = 0;
    tf::Executor executor(argument(count, arguments, 1));
    double seconds = 0;
    // The second time counts.
    for (int round = 0; round < 2; round++) {
        ran = 0;
        double start = now();
        tf::AsyncTask last = executor.silent_dependent_async([&ran] { ran += ran == 0; });
        for (int64_t i = 1; i < links; i++) last = executor.silent_dependent_async([&ran, i] { ran += ran == i; }, last);
        executor.wait_for_all();
        seconds = now() - start;
    }
    print_outcome(seconds, ran);
}
