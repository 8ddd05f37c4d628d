"""The ABI of DLPack 1.x and of the unversioned capsules before it. Source: dlpack.h 1.1."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    CPU = 1            # DLDeviceType
    CUDA = 2
    CUDA_HOST = 3
    CUDA_MANAGED = 13

cdef enum:
    READ_ONLY = 1      # flags
    IS_COPIED = 2
    SUBBYTE_PADDED = 4


cdef struct DLDevice:
    int32_t device_type
    int32_t device_id


cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes


cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides       # in elements; null: C-contiguous
    uint64_t byte_offset


cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept


cdef struct DLManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor dl_tensor


cdef class Imported:
    """A tensor that a producer handed over; its deleter is called when this goes."""

    cdef DLManagedTensorVersioned* _versioned    # constant; one of the two
    cdef DLManagedTensor* _plain                 # constant

    cdef const DLTensor* tensor(self) noexcept
    cdef bint is_read_only(self) noexcept


cdef Imported consume(object capsule)
cdef object export(object owner, bint versioned, void* data, DLDevice device, DLDataType dtype, tuple shape,
                   tuple strides, uint64_t flags)
