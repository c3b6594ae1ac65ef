// Tasks that do nothing, all made by the main thread. Arguments: cores, how many.
#include "common.h"
#include <atomic>
#include <taskflow/taskflow.hpp>

int main(int count, char **arguments) {
    int64_t tasks = argument(count, arguments, 2);
    tf::Executor executor(argument(count, arguments, 1));
    std::atomic<int64_t> ran{0};
    // The first time they count themselves; the second time counts.
    for (int64_t i = 0; i < tasks; i++) executor.silent_async([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
    executor.wait_for_all();
    double start = now();
    for (int64_t i = 0; i < tasks; i++) executor.silent_async([] {});
    executor.wait_for_all();
    print_outcome(now() - start, ran.load());
}
