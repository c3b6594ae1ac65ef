/* Which OpenMP there is. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int threads = 0;
#pragma omp parallel num_threads(2)
#pragma omp atomic
    threads++;
    printf("version %d, compiler %s\n", _OPENMP, __VERSION__);
    return threads < 1;
}
