// Children of a task, which ends when they have: a task group where Taskflow has it, which is the fastest, a subflow in versions before 4.
#ifndef TASKGROUP_HPP
#define TASKGROUP_HPP

#include <taskflow/taskflow.hpp>

#if TF_VERSION >= 400000
using Here = tf::Executor;

struct Children {
    tf::TaskGroup group;
    Here &here;
    explicit Children(Here &here) : group(here.task_group()), here(here) {}

    // Runs a function, which is given where it may have children of its own, side by side with others.
    template <typename F> void add(F run) { group.silent_async([run, &here = here]() mutable { run(here); }); }
    void wait() { group.corun(); }
};

template <typename F> void run_all(tf::Executor &executor, F run) {
    executor.async([run, &executor]() mutable { run(executor); }).get();
}
#else
using Here = tf::Subflow;

struct Children {
    Here &here;
    explicit Children(Here &here) : here(here) {}
    template <typename F> void add(F run) { here.emplace([run](Here &there) mutable { run(there); }); }
    void wait() { here.join(); }
};

template <typename F> void run_all(tf::Executor &executor, F run) {
    tf::Taskflow graph;
    graph.emplace([run](Here &here) mutable { run(here); });
    executor.run(graph).wait();
}
#endif

#endif
