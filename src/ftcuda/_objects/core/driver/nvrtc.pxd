from libcpp cimport bool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "_driver/nvrtc.hpp" namespace "ftcuda::driver" nogil:
    enum class Output:
        ptx
        cubin
        ltoir

    cppclass Compilation:
        string source
        string name
        vector[string] options
        vector[string] name_expressions
        Output output
        bool makes_header
        bool is_forked
        string problem
        string log
        string image
        string ptx
        vector[string] lowered_names
        int header_status

    bool load_nvrtc(const vector[string]& paths, string& problem) except +
    bool nvrtc_loaded()
    const string& nvrtc_path()
    pair[int, int] nvrtc_version()
    bool compile(Compilation& compilation) except +
