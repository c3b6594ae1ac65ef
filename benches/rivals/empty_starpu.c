/* Tasks that do nothing, all made by the main thread. Arguments: cores, how many. */
#include "common.h"
#include <starpu.h>

static int64_t ran;

static void count_run(void *buffers[], void *argument) {
    (void)buffers, (void)argument;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static void nothing(void *buffers[], void *argument) { (void)buffers, (void)argument; }

int main(int count, char **arguments) {
    int64_t tasks = argument(count, arguments, 2);
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = (int)argument(count, arguments, 1);
    conf.ncuda = 0;
    if (starpu_init(&conf) != 0) return 3;
    static struct starpu_codelet codelets[2] = {{.cpu_funcs = {count_run}, .name = "count"}, {.cpu_funcs = {nothing}, .name = "nothing"}};
    double seconds = 0;
    /* The first time they count themselves; the second time counts. */
    for (int round = 0; round < 2; round++) {
        double start = now();
        for (int64_t i = 0; i < tasks; i++) {
            struct starpu_task *task = starpu_task_create();
            task->cl = &codelets[round];
            if (starpu_task_submit(task) != 0) return 3;
        }
        starpu_task_wait_for_all();
        seconds = now() - start;
    }
    starpu_shutdown();
    print_outcome(seconds, ran);
    return 0;
}
