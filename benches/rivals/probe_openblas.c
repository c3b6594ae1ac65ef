/* Which OpenBLAS there is, and which kernels it takes on this processor. */
#include <cblas.h>
#include <stdio.h>

extern char *openblas_get_config(void);
extern char *openblas_get_corename(void);

int main(void) {
    char version[64];
    if (sscanf(openblas_get_config(), "OpenBLAS %63s", version) != 1) return 1;
    printf("version %s, kernels for %s\n", version, openblas_get_corename());
    return 0;
}
