// A C++ extension that reaches the driver through ftcuda: nothing of CUDA is linked, and no CUDA header is needed.
//
//     c++ -std=c++17 -shared -fPIC -I$(python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
//         -I$(python -c 'import ftcuda; print(ftcuda.get_include())') tiles.cpp \
//         -o tiles$(python3-config --extension-suffix)
#include <Python.h>

#include <ftcuda/driver.h>

#include <cstdint>

namespace {

struct alignas(64) TensorMap {
    std::uint64_t words[16];
};

using Encode = int (*)(TensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                       const std::uint32_t*, const std::uint32_t*, int, int, int, int);
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

const ftcuda_driver_v1* driver;  // set once, when the module is imported

PyObject* fail(const char* what, int status) {
    PyErr_Format(PyExc_RuntimeError, "cannot %s: %s (%s)", what, driver->status_name(status),
                 driver->status_text(status));
    return nullptr;
}

// launch_copy(stream, function, address, rows, columns, out): encodes a map of tiles of 8 x 32 floats, and launches a
// kernel that takes it and a pointer.
PyObject* launch_copy(PyObject*, PyObject* arguments) {
    unsigned long long stream, function, address, out;
    unsigned rows, columns;
    if (!PyArg_ParseTuple(arguments, "KKKIIK", &stream, &function, &address, &rows, &columns, &out)) return nullptr;
    Encode encode;
    Launch launch;
    if (int status = driver->find("cuTensorMapEncodeTiled", 12000, reinterpret_cast<void**>(&encode)))
        return fail("find the encoder", status);
    if (int status = driver->find("cuLaunchKernel", 4000, reinterpret_cast<void**>(&launch)))
        return fail("find the launch", status);
    TensorMap map;
    const std::uint64_t extents[] = {columns, rows}, strides[] = {4ull * columns};
    const std::uint32_t box[] = {32, 8}, steps[] = {1, 1};
    int status;
    Py_BEGIN_ALLOW_THREADS  // as with any blocking call: detached from the interpreter
    status = encode(&map, 7, 2, reinterpret_cast<void*>(address), extents, strides, box, steps, 0, 0, 0, 0);
    if (status == 0) {
        void* parameters[] = {&map, &out};
        status = launch(reinterpret_cast<void*>(function), 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<void*>(stream),
                        parameters, nullptr);
    }
    Py_END_ALLOW_THREADS
    if (status != 0) return fail("launch", status);
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&map), sizeof map);
}

PyMethodDef methods[] = {{"launch_copy", launch_copy, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

int start(PyObject*) {
    driver = ftcuda_import_driver();
    return driver == nullptr ? -1 : 0;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(start)},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, nullptr},
};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiles", nullptr, 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_tiles() { return PyModuleDef_Init(&module); }
