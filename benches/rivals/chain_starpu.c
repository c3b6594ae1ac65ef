/* Tasks each of which comes after the one before, as all change one number, and counts only if it is its turn.
 * Arguments: cores, how many. */
#include "common.h"
#include <starpu.h>

static void add_one(void *buffers[], void *argument) {
    int64_t *ran = (int64_t *)STARPU_VARIABLE_GET_PTR(buffers[0]);
    *ran += *ran == (int64_t)(intptr_t)argument;
}

int main(int count, char **arguments) {
    int64_t links = argument(count, arguments, 2), ran = 0;
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = (int)argument(count, arguments, 1);
    conf.ncuda = 0;
    if (starpu_init(&conf) != 0) return 3;
    static struct starpu_codelet codelet = {.cpu_funcs = {add_one}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "add one"};
    starpu_data_handle_t handle;
    starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&ran, sizeof ran);
    double seconds = 0;
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        double start = now();
        for (int64_t i = 0; i < links; i++) {
            struct starpu_task *task = starpu_task_create();
            task->cl = &codelet;
            task->handles[0] = handle;
            task->cl_arg = (void *)(intptr_t)(round * links + i);
            if (starpu_task_submit(task) != 0) return 3;
        }
        starpu_task_wait_for_all();
        seconds = now() - start;
    }
    starpu_data_unregister(handle);
    starpu_shutdown();
    print_outcome(seconds, ran / 2);
    return 0;
}
