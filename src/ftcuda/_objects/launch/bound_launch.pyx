"""Launches whose arguments are bound."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free

cimport core.launch.bound_launch as core
cimport core.stream.stream as streams
from core.launch.arguments cimport Argument
from core.launch.bound_launch cimport BoundArgument
from core.completion.deferred_release cimport ForeignReference
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.launch.arguments cimport closable, numbered, pack, pack_reference, unpack, wrong_count
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.stream.stream cimport Stream, core_stream, quick_stream
from ftcuda._objects.support.deferred_release cimport foreign_reference, release_done
from ftcuda._objects.support.raising cimport raise_status, refuse_to_wait, refuse_to_make

from ftcuda._objects.support.options import integer


cdef class BoundLaunch:
    """A kernel with its configuration and arguments, checked and packed once. Made by :meth:`Kernel.bind`.

    Any number of threads may launch it, each in a stream of its own or all in one, while others change its arguments.
    In a hot loop take ``launch = bound.launch`` once in each thread: of what threads share, calls of that write only
    who uses the buffers.

    A tensor map is bound as it is: each launch reads it as it is then (see
    :meth:`TensorMapDescriptor.replace_address`). To bind what it is now, bind ``bytes(map)`` and keep the tensor.

    What is bound is kept where the garbage collector does not see it: an object that has a bound launch, and is bound
    in it, lives until the argument is replaced.

    Attributes
    ----------
    kernel : Kernel
    config : LaunchConfig

    Thread safety: atomic.
    """

    _made = "bound launches are made by Kernel.bind()"

    def __dealloc__(self):
        if self._bound != NULL:
            with nogil:
                self._bound.release()
            release_done()  # its arguments

    def launch(self, stream):
        """Submits the kernel with the arguments of one moment.

        Parameters
        ----------
        stream : Stream or object with ``__cuda_stream__``

        Thread safety: atomic. What another thread sets meanwhile is wholly in this launch or wholly out of it; a buffer
        that another thread closes is freed after this launch, or the launch raises `ClosedError`. Of launches that
        several threads submit to one stream at once, one with older arguments may come after one with newer ones; a
        section keeps them apart. Stream order: a submission.
        """
        launch_in(self, quick_stream(stream))

    def set(self, index, value):
        """Replaces one argument, for launches from now on.

        Parameters
        ----------
        index : int
            From 0, or from the end if negative.
        value : object
            As for :meth:`Kernel.bind`.

        Thread safety: atomic.

        Raises
        ------
        IndexError
            There is no such argument.
        TypeError, ValueError, OverflowError
            The value does not fit its parameter; nothing was changed.
        """
        cdef BoundArgument argument
        cdef Py_ssize_t count = self.kernel._slot_count
        index = integer(index, "index")
        if not -count <= index < count:
            raise IndexError(f"{self.kernel} has {count} arguments, and no argument {index}")
        cdef Py_ssize_t at = index if index >= 0 else index + count
        refuse_to_wait("set an argument of", self)
        cdef char* block = new_block(self.kernel)
        try:
            bind_one(self.kernel, at, value, None, block, argument)
            with nogil:
                self._bound.set(at, block, argument)
        finally:
            PyMem_Free(block)
        argument.value = Ref[ForeignReference]()
        release_done()

    @property
    def arguments(self):
        """The arguments of one moment, as a tuple of what the kernel is given.

        Numbers are as their parameters hold them: a float for a ``float`` parameter is rounded. Thread safety: atomic.
        """
        cdef Ref[core.BoundArguments] current
        refuse_to_wait("read the arguments of", self)
        with nogil:
            current = self._bound.arguments()
        return values_of(current)

    def __repr__(self):
        return f"<BoundLaunch of {self.kernel!r}>"


refuse_to_make(BoundLaunch)


cdef int launch_in(BoundLaunch bound, Stream stream) except -1:
    cdef Status status
    cdef Ref[core.BoundArguments] used
    cdef streams.Stream* target = core_stream(stream, NULL)
    with nogil:
        status = bound._bound.launch(target[0], used)
    if not status.ok():
        involved = (("the stream", stream), *closable(numbered(values_of(used))))
        raise_status(status, "launch", f"{bound.kernel} in {stream}", involved)
    if used.get().may_release():
        release_done()
    return 0


cdef tuple values_of(Ref[core.BoundArguments]& arguments):
    if arguments.get() == NULL:  # of a launch that did not get into its stream
        return ()
    return tuple([<object>arguments.get().value(index) for index in range(arguments.get().count())])


cdef char* new_block(KernelHandle kernel) except NULL:
    cdef char* block = <char*>PyMem_Calloc(kernel._block_size + 1, 1)  # no bytes of a tensor map are put there
    if block == NULL:
        raise MemoryError()
    return block


cdef int bind_one(KernelHandle kernel, Py_ssize_t index, object value, Stream stream, char* block,
                  BoundArgument& bound) except -1:
    """Packs one argument, and notes what else a launch must know of it. `stream`: None where it is not known yet."""
    cdef Argument argument
    if pack(kernel, index, value, block, &argument.buffer):
        view = pack_reference(kernel, index, value, stream, block, &argument)
        value = value if view is None else view  # which keeps the array
    elif argument.buffer != NULL:
        argument.foreign = argument.buffer.holder() != NULL
    bound = BoundArgument(argument, foreign_reference(unpack(kernel, index, value, block)))
    return 0


cdef Ref[core.BoundArguments] bind_all(KernelHandle kernel, tuple values, Stream stream) except *:
    """`stream`: the one of all launches, whose order that of arrays' producers becomes; or None."""
    cdef BoundArgument argument
    cdef Ref[core.BoundArguments] arguments
    cdef Py_ssize_t index
    if len(values) != kernel._slot_count:
        wrong_count(kernel, len(values))
    arguments = Ref[core.BoundArguments].adopt(new core.BoundArguments(kernel._kernel.arguments()))
    cdef char* block = new_block(kernel)
    try:
        for index in range(kernel._slot_count):
            argument = BoundArgument()
            bind_one(kernel, index, values[index], stream, block, argument)
            arguments.get().put(index, block, argument)
    finally:
        PyMem_Free(block)
    return arguments


cdef BoundLaunch bind(KernelHandle kernel, LaunchConfig config, tuple values):
    """Behind `Kernel.bind`."""
    cdef Ref[core.BoundArguments] arguments = bind_all(kernel, values, None)
    cdef BoundLaunch bound = BoundLaunch.__new__(BoundLaunch)
    bound.kernel = kernel
    bound.config = config
    bound._bound = new core.BoundLaunch(kernel._kernel[0], config._shape[0], arguments)
    return bound
