// Computations with sparse matrices by Trilinos (Tpetra), in turns. Arguments: cores, the kernel, and the folder of the data. Each process has a block of rows, as
// Tpetra divides them.
#include "common.h"
#include "turns_mpi.h"
#include <Kokkos_Core.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>
#include <TpetraExt_MatrixMatrix.hpp>
#include <fstream>
#include <string>
#include <vector>

using Map = Tpetra::Map<>;
using Row = Map::global_ordinal_type;
using Matrix = Tpetra::CrsMatrix<double>;
using Vectors = Tpetra::MultiVector<double>;

static std::string folder;

// Elements from `first` on of a file of numbers.
template <typename T> static std::vector<T> numbers(const std::string &name, int64_t first, size_t count) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    std::vector<T> found(count);
    file.seekg(first * static_cast<int64_t>(sizeof(T)));
    file.read(reinterpret_cast<char *>(found.data()), static_cast<std::streamsize>(count * sizeof(T)));
    if (!file) abort();
    return found;
}

static Teuchos::RCP<Matrix> matrix(const std::string &name, const Teuchos::RCP<const Map> &rows) {
    const size_t own = rows->getNodeNumElements();
    const Row low = rows->getMinGlobalIndex();
    const auto pos = numbers<int>(name + ".pos", low, own + 1);
    const auto crd = numbers<int>(name + ".crd", pos[0], static_cast<size_t>(pos[own] - pos[0]));
    const auto values = numbers<double>(name + ".values", pos[0], crd.size());
    std::vector<size_t> lengths(own);
    for (size_t row = 0; row < own; row++) lengths[row] = static_cast<size_t>(pos[row + 1] - pos[row]);
    auto made = Teuchos::rcp(new Matrix(rows, Teuchos::ArrayView<const size_t>(lengths.data(), own)));
    std::vector<Row> columns;
    for (size_t row = 0; row < own; row++) {
        const size_t first = static_cast<size_t>(pos[row] - pos[0]);
        columns.assign(crd.begin() + first, crd.begin() + first + lengths[row]);
        made->insertGlobalValues(low + static_cast<Row>(row), Teuchos::ArrayView<const Row>(columns.data(), columns.size()),
                                 Teuchos::ArrayView<const double>(values.data() + first, lengths[row]));
    }
    made->fillComplete();
    return made;
}

// The sum of all elements, each by a weight of its row and column.
static double weighed(const Matrix &sum) {
    double all = 0;
    const auto rows = sum.getRowMap(), columns = sum.getColMap();
    for (size_t row = 0; row < rows->getNodeNumElements(); row++) {
        Matrix::local_inds_host_view_type at;
        Matrix::values_host_view_type elements;
        sum.getLocalRowView(static_cast<int>(row), at, elements);
        const int64_t number = rows->getGlobalElement(static_cast<int>(row));
        for (size_t entry = 0; entry < at.extent(0); entry++)
            all += elements[entry] * static_cast<double>((number + 3 * columns->getGlobalElement(at[entry])) % 5 + 1);
    }
    return all;
}

int main(int count, char **arguments) {
    Tpetra::ScopeGuard scope(&count, &arguments);
    const std::string kernel = arguments[2];
    folder = arguments[3];
    const auto comm = Tpetra::getDefaultComm();
    const int rank = comm->getRank(), all = numbers<int>("extents", 0, 1)[0];
    const bool is_sum = kernel == "spadd3";
    const size_t width = kernel == "spmv" || is_sum ? 1 : std::stoul(kernel.substr(4));
    const auto rows = Teuchos::rcp(new const Map(static_cast<Tpetra::global_size_t>(all), 0, comm));
    const auto a = matrix("A", rows);
    const auto b = is_sum ? matrix("B", rows) : a, c = is_sum ? matrix("C", rows) : a;
    Vectors x(rows, width), y(rows, width);
    {
        auto elements = x.getLocalViewHost(Tpetra::Access::OverwriteAll);
        for (size_t row = 0; row < elements.extent(0); row++)
            for (size_t column = 0; column < width; column++)
                elements(row, column) = static_cast<double>((rows->getGlobalElement(static_cast<int>(row)) * static_cast<int64_t>(width) + static_cast<int64_t>(column)) % 5) + 1.0;
    }
    // The first time is not measured.
    for (bool is_first = true; is_first || is_our_turn(rank); is_first = false) {
        comm->barrier();
        const double start = now();
        Teuchos::RCP<Matrix> sum;
        if (is_sum) {
            const auto two = Tpetra::MatrixMatrix::add(1.0, false, *a, 1.0, false, *b);
            sum = Tpetra::MatrixMatrix::add(1.0, false, *two, 1.0, false, *c);
        } else {
            a->apply(x, y);
        }
        comm->barrier();
        const double seconds = now() - start;
        double mine = 0, found = 0;
        if (is_sum) {
            mine = weighed(*sum);
        } else {
            const auto elements = y.getLocalViewHost(Tpetra::Access::ReadOnly);
            for (size_t row = 0; row < elements.extent(0); row++)
                for (size_t column = 0; column < width; column++)
                    mine += elements(row, column) * static_cast<double>((rows->getGlobalElement(static_cast<int>(row)) + 3 * static_cast<int64_t>(column)) % 5 + 1);
        }
        MPI_Reduce(&mine, &found, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank) continue;
        if (is_first) print_ready();
        else print_turn(seconds, static_cast<int64_t>(found));
    }
    return 0;
}
