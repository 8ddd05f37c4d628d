from libcpp cimport bool
from libcpp.string cimport string

from core.sync.reason cimport Status


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUevent
    cppclass CUuuid:
        char bytes[16]


cdef extern from "_core/device/device.hpp" namespace "ftcuda::core" nogil:
    cppclass Device:
        @staticmethod
        Status count(int& devices)
        @staticmethod
        Status get(int ordinal, Device*& device) except +
        @staticmethod
        Status current(int& ordinal)
        Status make_current() except +
        Status context(Context*& context) except +
        int attribute(int number)
        int ordinal()
        const string& name()
        const string& pci_bus_id()
        const CUuuid& uuid()
        size_t total_memory()
        int compute_capability()
        bool has_memory_pools()
        bool has_host_pools()
        bool has_managed_pools()
        bool has_stream_values()
        bool has_tensor_maps()
        @staticmethod
        bool has_graphs()
        @staticmethod
        bool has_conditional_graphs()
        @staticmethod
        Device* found(int ordinal)

    enum: DEVICE_LIMIT "ftcuda::core::Device::limit"


cdef extern from "_core/device/context.hpp" namespace "ftcuda::core" nogil:
    cppclass Context:
        Device& device()
        Status usable()
        Status memory_info(size_t& free, size_t& total) except +
        Status priority_range(int& least, int& greatest) except +
