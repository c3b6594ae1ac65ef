// Which Taskflow there is.
#include <cstdio>
#include <taskflow/taskflow.hpp>

int main() {
    tf::Executor executor(1);
    std::printf("version %d.%d.%d, compiler %s\n", TF_MAJOR_VERSION, TF_MINOR_VERSION, TF_PATCH_VERSION, __VERSION__);
}
