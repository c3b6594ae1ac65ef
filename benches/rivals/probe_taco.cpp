// Which TACO there is.
#include <cstdio>
#include <taco.h>
#include <taco/version.h>

int main() {
    taco::taco_set_num_threads(1);
    std::printf("version %s.%s at commit %s\n", TACO_VERSION_MAJOR, TACO_VERSION_MINOR, TACO_VERSION_GIT_SHORTHASH);
}
