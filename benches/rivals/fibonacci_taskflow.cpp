// Fibonacci numbers by their definition, a task a call. Arguments: cores, which number.
#include "common.h"
#include "taskgroup.hpp"

static int64_t fibonacci(int64_t n, Here &here) {
    if (n < 2) return n;
    int64_t left = 0, right = 0;
    Children children(here);
    children.add([n, &left](Here &there) { left = fibonacci(n - 1, there); });
#if TF_VERSION >= 400000
    right = fibonacci(n - 2, here);
#else
    // A subflow cannot be used by a call in it.
    children.add([n, &right](Here &there) { right = fibonacci(n - 2, there); });
#endif
    children.wait();
    return left + right;
}

int main(int count, char **arguments) {
    int64_t n = argument(count, arguments, 2), answer = 0;
    tf::Executor executor(argument(count, arguments, 1));
    double seconds = 0;
    // The second time counts.
    for (int round = 0; round < 2; round++) {
        double start = now();
        run_all(executor, [n, &answer](Here &here) { answer = fibonacci(n, here); });
        seconds = now() - start;
    }
    print_outcome(seconds, answer);
}
