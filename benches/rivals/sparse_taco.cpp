// Computations with sparse tensors by TACO, in turns. Arguments: cores, the kernel, and the folder of the data.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// What has to be computed again is for TACO itself to say; here it is computed over and over from the same operands.
#define private public
#include <taco.h>
#undef private

using namespace taco;

static std::string folder;

template <typename T> static std::vector<T> read(const std::string &name) {
    std::ifstream file(folder + "/" + name, std::ios::binary | std::ios::ate);
    std::vector<T> numbers(file.tellg() / sizeof(T));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(numbers.data()), numbers.size() * sizeof(T));
    return numbers;
}

static Tensor<double> matrix(const std::string &name, int rows) {
    auto pos = read<int>(name + ".pos"), crd = read<int>(name + ".crd");
    auto values = read<double>(name + ".values");
    // The tensor keeps the memory.
    auto *p = new std::vector<int>(pos), *c = new std::vector<int>(crd);
    auto *v = new std::vector<double>(values);
    return makeCSR<double>(name, {rows, rows}, p->data(), c->data(), v->data());
}

static Tensor<double> counted(const std::string &name, const std::vector<int> &extents) {
    Tensor<double> made(name, extents, Format(std::vector<ModeFormatPack>(extents.size(), Dense)));
    int64_t count = 1;
    for (int extent : extents) count *= extent;
    auto *values = new std::vector<double>(count);
    for (int64_t at = 0; at < count; at++) (*values)[at] = at % 5 + 1.0;
    auto storage = made.getStorage();
    storage.setValues(makeArray(values->data(), values->size(), Array::UserOwns));
    made.setStorage(storage);
    return made;
}

static Tensor<double> cube(const std::string &name, const std::vector<int> &extents) {
    auto coordinates = read<int>(name + ".coordinates");
    auto values = read<double>(name + ".values");
    Tensor<double> made(name, extents, Format({Sparse, Sparse, Sparse}));
    made.reserve(values.size());
    for (size_t entry = 0; entry < values.size(); entry++)
        made.insert({coordinates[3 * entry], coordinates[3 * entry + 1], coordinates[3 * entry + 2]}, values[entry]);
    made.pack();
    return made;
}

int main(int, char **arguments) {
    const int cores = std::stoi(arguments[1]);
    const std::string kernel = arguments[2];
    folder = arguments[3];
    taco_set_num_threads(cores);
    taco_set_parallel_schedule(ParallelSchedule::Dynamic, 64);
    const auto extents = read<int>("extents");
    const int rows = extents[0];
    IndexVar i("i"), j("j"), k("k"), l("l");
    Format csr({Dense, Sparse});
    Tensor<double> y;
    bool assembles = false;
    if (kernel == "spmv") {
        auto a = matrix("A", rows), x = counted("x", {rows});
        y = Tensor<double>("y", {rows}, Format({Dense}));
        y(i) = a(i, j) * x(j);
    } else if (kernel.rfind("spmm", 0) == 0) {
        const int columns = std::stoi(kernel.substr(4));
        auto a = matrix("A", rows), x = counted("X", {rows, columns});
        y = Tensor<double>("Y", {rows, columns}, Format({Dense, Dense}));
        y(i, k) = a(i, j) * x(j, k);
    } else if (kernel == "spadd3") {
        auto a = matrix("A", rows), b = matrix("B", rows), c = matrix("C", rows);
        y = Tensor<double>("Y", {rows, rows}, csr);
        y(i, j) = a(i, j) + b(i, j) + c(i, j);
        assembles = true;
    } else if (kernel == "spgemm") {
        auto a = matrix("A", rows);
        y = Tensor<double>("Y", {rows, rows}, csr);
        y(i, j) = a(i, k) * a(k, j);
        assembles = true;
    } else if (kernel.rfind("sddmm", 0) == 0) {
        const int columns = std::stoi(kernel.substr(5));
        auto a = matrix("A", rows), c = counted("C", {rows, columns}), d = counted("D", {rows, columns});
        y = Tensor<double>("Y", {rows, rows}, csr);
        y(i, j) = a(i, j) * c(i, k) * d(j, k);
    } else if (kernel == "spttv") {
        auto t = cube("T", extents), x = counted("x", {extents[2]});
        y = Tensor<double>("Y", {extents[0], extents[1]}, Format({Sparse, Sparse}));
        y(i, j) = t(i, j, k) * x(k);
    } else {
        const int columns = std::stoi(kernel.substr(6));
        auto t = cube("T", extents), c = counted("C", {extents[1], columns}), d = counted("D", {extents[2], columns});
        y = Tensor<double>("Y", {extents[0], columns}, Format({Dense, Dense}));
        y(i, l) = t(i, j, k) * c(j, l) * d(k, l);
    }
    y.compile();
    y.assemble();
    y.compute();
    std::printf("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        const auto start = std::chrono::steady_clock::now();
        if (assembles) {
            y.setNeedsAssemble(true);
            y.assemble();
        }
        y.setNeedsCompute(true);
        y.compute();
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        double sum = 0;
        for (auto &value : iterate<double>(y)) {
            const int64_t second = y.getOrder() > 1 ? value.first[1] : 0;
            sum += value.second * ((value.first[0] + 3 * second) % 5 + 1);
        }
        std::printf("%.9f %llu\n", seconds.count(), static_cast<unsigned long long>(sum));
        std::fflush(stdout);
    }
}
