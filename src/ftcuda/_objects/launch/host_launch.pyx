"""Functions of the host's in the order of a stream."""

from libcpp.utility cimport move

cimport core.launch.host_launch as core
cimport core.stream.stream as streams
from core.completion.deferred_release cimport Retention
from core.sync.reason cimport Status
from ftcuda._objects.stream.stream cimport Stream, StreamSource, as_stream
from ftcuda._objects.support.host_function cimport HostFunction, host_function
from ftcuda._objects.support.raising cimport check, release_and_warn


def host_launch(stream, fn, *, user_data=None):
    """Calls a function of the host's in the order of a stream: work submitted later waits until it has returned.

    A driver makes some 50,000 such calls a second in all of the process. Where nothing is to wait,
    :meth:`Stream.when_done` costs less.

    Parameters
    ----------
    stream : Stream or object with ``__cuda_stream__``
        In a graph builder the call becomes part of the graph, as by :meth:`GraphBuilder.callback`.
    fn : callable or function pointer of ctypes
        A callable is called without arguments, by a thread of ftcuda's that makes such calls one after the other, and
        for which the driver's thread waits. What it raises goes to `sys.unraisablehook`. What waits for the stream, or
        for another such call, waits for ever. What needs the driver is refused, with ``CUDA_ERROR_NOT_PERMITTED``; what
        is closed or dropped there ends a moment later. A function pointer is called by the driver's thread, with
        `user_data`, and must not come to a call of the driver: of the type ``ctypes.CFUNCTYPE(None,
        ctypes.c_void_p)``.
    user_data : int or bytes-like, optional
        For a function pointer. Bytes are copied, and the copy is kept until the call is over.

    If the context fails before, `fn` is not called. At exit what was not called yet never is.

    Thread safety: atomic. Stream order: a submission.

    Raises
    ------
    TypeError, ValueError
        `fn` or `user_data` is not what is said above; nothing was submitted.
    """
    cdef Status status
    cdef Retention retention
    if isinstance(stream, StreamSource):
        (<StreamSource>stream).check_host_function()
    cdef Stream wanted = as_stream(stream)
    cdef streams.Stream* found = wanted.on(NULL)
    cdef HostFunction function = host_function(fn, user_data, retention)
    with nogil:
        status = core.host_launch(found[0], function.function, function.user_data, move(retention))
    check(status, "launch a host function in", stream)
    release_and_warn()
