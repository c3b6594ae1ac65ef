/* Which StarPU there is. */
#include <starpu.h>
#include <stdio.h>

int main(void) {
    int major, minor, release;
    starpu_get_version(&major, &minor, &release);
    printf("version %d.%d.%d\n", major, minor, release);
    return 0;
}
