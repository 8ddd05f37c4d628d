from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/code/image.hpp" namespace "ftcuda::core" nogil:
    bool is_whole(const string& image)
    vector[string] kernel_names(const string& image) except +


cdef extern from "_core/code/module.hpp" namespace "ftcuda::core" nogil:
    cppclass Module:
        @staticmethod
        Ref[Module] make(string image, string signatures) except +
        @staticmethod
        bool accepts_cubins(Context& context, bool& is_known)
        @staticmethod
        Status offer_cubin(Context& context, string cubin, bool& is_taken) except +
        const string& image()
        const string& signatures()
        Status global_ "global"(Context& context, const char* name, unsigned long long& pointer, size_t& bytes,
                                string& log) except +
        void release()
