// The stencil as a Taskflow graph of many steps, which is built before time counts, and run again and again. A run begins when the one before has ended.
// Arguments: cores, width, steps, iterations of a task.
#include "common.h"
#include <algorithm>
#include <taskflow/taskflow.hpp>
#include <vector>

// Steps of the graph: so many that waiting between runs costs little, so few that the graph stays in the cache.
static const int64_t STEPS = 1000;

struct Stencil {
    int64_t width, iterations;
    Stamp *rows[2];
    Right *right;

    // A graph of some steps. In its first run they count from `first`, in the next from `steps` later; after so many runs from `first` again.
    void build(tf::Taskflow &graph, int64_t first, int64_t steps, int64_t runs) {
        std::vector<tf::Task> before(width), after(width);
        for (int64_t row = 0; row < steps; row++) {
            for (int64_t point = 0; point < width; point++) {
                after[point] = graph.emplace([=, this, run = int64_t(0)]() mutable {
                    int64_t step = first + run * steps + row;
                    run = run + 1 < runs ? run + 1 : 0;
                    stencil_task(step, point, width, iterations, rows[(step + 1) % 2], rows[step % 2], right);
                });
                if (row == 0) continue;
                for (int64_t source = std::max<int64_t>(point - 1, 0); source <= std::min(point + 1, width - 1); source++)
                    before[source].precede(after[point]);
            }
            std::swap(before, after);
        }
    }
};

int main(int count, char **arguments) {
    int64_t cores = argument(count, arguments, 1), width = argument(count, arguments, 2);
    int64_t steps = argument(count, arguments, 3), iterations = argument(count, arguments, 4);
    Stamp *rows = (Stamp *)lines(2 * width, sizeof(Stamp));
    Stencil stencil{width, iterations, {rows, rows + width}, (Right *)lines(width, sizeof(Right))};
    tf::Executor executor(cores);
    int64_t runs = steps / STEPS, rest = steps % STEPS;
    tf::Taskflow graph, end;
    stencil.build(graph, 0, STEPS, runs);
    stencil.build(end, runs * STEPS, rest, 1);
    double seconds = 0;
    // The second time counts.
    for (int round = 0; round < 2; round++) {
        for (int64_t point = 0; point < width; point++) stencil.right[point].tasks = 0;
        double start = now();
        executor.run_n(graph, runs).wait();
        executor.run(end).wait();
        seconds = now() - start;
    }
    print_outcome(seconds, tasks_with_right_inputs(stencil.right, width));
}
