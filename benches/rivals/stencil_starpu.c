/* The stencil as StarPU tasks over data handles, in the order of a sequential program: StarPU finds what waits for what.
 * Arguments: cores, width, steps, iterations of a task. */
#include "common.h"
#include <starpu.h>

typedef struct {
    int64_t step, point, width, iterations;
    Stamp **rows;
    Right *right;
} Task;

static void run(void *buffers[], void *argument) {
    (void)buffers; /* They are in memory that all workers share, where the rows point to. */
    const Task *task = (const Task *)argument;
    stencil_task(task->step, task->point, task->width, task->iterations, task->rows[(task->step + 1) % 2], task->rows[task->step % 2], task->right);
}

/* A task that writes its own stamp and reads as many as it has neighbours, and itself. */
static struct starpu_codelet with_two = {
    .cpu_funcs = {run}, .nbuffers = 3, .modes = {STARPU_W, STARPU_R, STARPU_R}, .name = "end"};
static struct starpu_codelet with_three = {
    .cpu_funcs = {run}, .nbuffers = 4, .modes = {STARPU_W, STARPU_R, STARPU_R, STARPU_R}, .name = "middle"};

int main(int count, char **arguments) {
    int cores = (int)argument(count, arguments, 1);
    int64_t width = argument(count, arguments, 2), steps = argument(count, arguments, 3), iterations = argument(count, arguments, 4);
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = cores;
    conf.ncuda = 0;
    if (starpu_init(&conf) != 0) return 3;
    Stamp *rows[2] = {(Stamp *)lines(width, sizeof(Stamp)), (Stamp *)lines(width, sizeof(Stamp))};
    Right *right = (Right *)lines(width, sizeof(Right));
    Task *tasks = (Task *)lines(steps * width, sizeof(Task) + 64 - sizeof(Task) % 64);
    starpu_data_handle_t *handles[2];
    for (int row = 0; row < 2; row++) {
        handles[row] = (starpu_data_handle_t *)lines(width, sizeof(Stamp));
        for (int64_t point = 0; point < width; point++)
            starpu_variable_data_register(&handles[row][point], STARPU_MAIN_RAM, (uintptr_t)&rows[row][point], sizeof(Stamp));
    }
    double seconds = 0;
    /* The second time counts. */
    for (int round = 0; round < 2; round++) {
        for (int64_t point = 0; point < width; point++) right[point].tasks = 0;
        double start = now();
        for (int64_t step = 0; step < steps; step++) {
            starpu_data_handle_t *before = handles[(step + 1) % 2], *after = handles[step % 2];
            for (int64_t point = 0; point < width; point++) {
                Task *arguments_of_task = &tasks[step * width + point];
                *arguments_of_task = (Task){step, point, width, iterations, rows, right};
                struct starpu_task *task = starpu_task_create();
                int is_end = point == 0 || point == width - 1;
                task->cl = is_end ? &with_two : &with_three;
                task->handles[0] = after[point];
                for (int64_t source = point > 0 ? point - 1 : point, n = 1; source <= point + 1 && source < width; source++, n++)
                    task->handles[n] = before[source];
                task->cl_arg = arguments_of_task;
                task->cl_arg_size = sizeof(Task);
                if (starpu_task_submit(task) != 0) return 3;
            }
        }
        starpu_task_wait_for_all();
        seconds = now() - start;
    }
    int64_t answer = tasks_with_right_inputs(right, width);
    for (int row = 0; row < 2; row++)
        for (int64_t point = 0; point < width; point++) starpu_data_unregister(handles[row][point]);
    starpu_shutdown();
    print_outcome(seconds, answer);
    return 0;
}
