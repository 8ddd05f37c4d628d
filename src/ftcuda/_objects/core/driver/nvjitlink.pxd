from libcpp cimport bool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "_driver/nvjitlink.hpp" namespace "ftcuda::driver" nogil:
    enum class Input:
        cubin
        ptx
        ltoir
        fatbin
        object_file
        library

    cppclass Part "ftcuda::driver::Linking::Part":
        Input input
        const string* image
        string name

    cppclass Linking:
        vector[string] options
        vector[Part] parts
        bool makes_ptx
        bool is_forked
        string problem
        string error_log
        string info_log
        string image

    bool load_nvjitlink(const vector[string]& paths, string& problem) except +
    bool nvjitlink_loaded()
    pair[unsigned, unsigned] nvjitlink_version()
    bool link(Linking& linking) except +
