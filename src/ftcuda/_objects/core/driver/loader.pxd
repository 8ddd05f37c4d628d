from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "_driver/loader.hpp" namespace "ftcuda::driver" nogil:
    cppclass Loaded:
        string path
        int version
        bool simulated

    vector[string] candidates(const string& choice, const string& simulated_driver) except +
    bool load(const vector[string]& paths, string& problem) except +
    int find_entry(const char* name, int version, void** function) noexcept
    bool loaded()
    const Loaded& loaded_driver()
