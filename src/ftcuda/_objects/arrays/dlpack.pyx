"""DLPack capsules, in and out."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "Python.h":
    int Py_IsInitialized() nogil
    int Py_IsFinalizing() nogil

cdef enum:
    MAJOR = 1
    MINOR = 1

# Capsules keep the pointer to their name: these live for ever.
cdef const char* VERSIONED = b"dltensor_versioned"
cdef const char* USED_VERSIONED = b"used_dltensor_versioned"
cdef const char* PLAIN = b"dltensor"
cdef const char* USED_PLAIN = b"used_dltensor"


cdef class Imported:
    def __dealloc__(self):
        if self._versioned != NULL and self._versioned.deleter != NULL:
            self._versioned.deleter(self._versioned)
        if self._plain != NULL and self._plain.deleter != NULL:
            self._plain.deleter(self._plain)

    cdef const DLTensor* tensor(self) noexcept:
        return &self._versioned.dl_tensor if self._versioned != NULL else &self._plain.dl_tensor

    cdef bint is_read_only(self) noexcept:
        return self._versioned != NULL and (self._versioned.flags & READ_ONLY) != 0


cdef Imported consume(object capsule):
    """Takes the tensor out of a capsule, which is marked as used: from here on the tensor is ours to delete."""
    cdef Imported taken = Imported.__new__(Imported)
    if PyCapsule_IsValid(capsule, VERSIONED):
        taken._versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)
        PyCapsule_SetName(capsule, USED_VERSIONED)
        if taken._versioned.major != MAJOR:  # all that may be touched of another version is the deleter
            raise BufferError(
                f"DLPack {taken._versioned.major}.{taken._versioned.minor} is not understood, only {MAJOR}.x"
            )
    elif PyCapsule_IsValid(capsule, PLAIN):
        taken._plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, PLAIN)
        PyCapsule_SetName(capsule, USED_PLAIN)
    else:
        raise BufferError(
            f"__dlpack__ must return a capsule 'dltensor_versioned' or 'dltensor' that nobody used, not {capsule!r}"
        )
    return taken


cdef void delete_owner(void* owner) noexcept nogil:
    # From any thread, at any time. While the interpreter ends a thread that attaches would hang: the object is left
    # alone.
    if not Py_IsInitialized() or Py_IsFinalizing():
        return
    with gil:
        Py_DECREF(<object>owner)


cdef void delete_versioned(DLManagedTensorVersioned* tensor) noexcept nogil:
    delete_owner(tensor.manager_ctx)
    PyMem_RawFree(tensor)


cdef void delete_plain(DLManagedTensor* tensor) noexcept nogil:
    delete_owner(tensor.manager_ctx)
    PyMem_RawFree(tensor)


cdef void destroy_capsule(object capsule) noexcept:
    """Deletes the tensor of a capsule that no consumer took."""
    cdef DLManagedTensorVersioned* versioned
    cdef DLManagedTensor* plain
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)
        versioned.deleter(versioned)
    elif PyCapsule_IsValid(capsule, PLAIN):
        plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, PLAIN)
        plain.deleter(plain)


cdef object export(object owner, bint versioned, void* data, DLDevice device, DLDataType dtype, tuple shape,
                   tuple strides, uint64_t flags):
    """A capsule on a tensor that keeps `owner`. `strides` in elements."""
    cdef Py_ssize_t index, ndim = len(shape)
    cdef size_t head = sizeof(DLManagedTensorVersioned) if versioned else sizeof(DLManagedTensor)
    cdef char* memory = <char*>PyMem_RawMalloc(head + 2 * ndim * sizeof(int64_t))
    if memory == NULL:
        raise MemoryError()
    cdef int64_t* extents = <int64_t*>(memory + head)
    cdef DLTensor tensor
    cdef DLManagedTensorVersioned* new
    cdef DLManagedTensor* old
    for index in range(ndim):
        extents[index] = shape[index]
        extents[ndim + index] = strides[index]
    tensor.data = data
    tensor.device = device
    tensor.ndim = <int32_t>ndim
    tensor.dtype = dtype
    tensor.shape = extents
    tensor.strides = extents + ndim
    tensor.byte_offset = 0
    Py_INCREF(owner)  # the tensor's, until its deleter is called
    if versioned:
        new = <DLManagedTensorVersioned*>memory
        new.major, new.minor = MAJOR, MINOR
        new.manager_ctx = <void*>owner
        new.deleter = delete_versioned
        new.flags = flags
        new.dl_tensor = tensor
    else:
        old = <DLManagedTensor*>memory
        old.dl_tensor = tensor
        old.manager_ctx = <void*>owner
        old.deleter = delete_plain
    try:
        return PyCapsule_New(memory, VERSIONED if versioned else PLAIN, destroy_capsule)
    except BaseException:
        Py_DECREF(owner)
        PyMem_RawFree(memory)
        raise
