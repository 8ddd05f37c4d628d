"""What comes of requests."""

from concurrent.futures import CancelledError

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.object cimport PyObject
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move

from core.sync.limit cimport Limit
from core.sync.reason cimport Reason, Status
from ftcuda._objects.serving.row_layout cimport RowLayout
from ftcuda._objects.stream.awaiting cimport call_told, until_told
from ftcuda._objects.support.deferred_release cimport foreign_reference, object_of, shared
from ftcuda._objects.support.raising cimport raise_status, refuse_in_forked_child, refuse_to_make
from ftcuda._objects.support.waiting cimport limit_of, pass_on

from ftcuda._objects.serving.watch import Watch
from ftcuda.errors import ForwardError, RequestExpiredError


cdef class Answer:
    """Memory of one array of an answer, which numpy's array keeps."""

    cdef Request* _request    # constant
    cdef size_t _index        # constant
    cdef Py_ssize_t _bytes    # constant

    def __dealloc__(self):
        if self._request != NULL:
            self._request.release()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self._request.results().array(self._index), self._bytes, False, flags)


@cython.no_gc_clear  # what the owner has is read without a reference
cdef class BatchFuture(Ending):
    """What comes of a request: an answer, a failure, or nothing, because it was cancelled.

    It has the methods of a :class:`concurrent.futures.Future` for those who wait, and :func:`concurrent.futures.wait`
    and :func:`concurrent.futures.as_completed` take it. ``await future`` gives its result.
    """

    _made = "futures are made by Batcher.submit() and Batcher.submit_many()"

    def __dealloc__(self):
        if self._request != NULL:
            self._request.release()

    @staticmethod
    cdef BatchFuture of(Request* made, Batcher* batcher, object owner, PyObject* outputs, bint many):
        cdef BatchFuture future = BatchFuture.__new__(BatchFuture)
        future._request, future._batcher, future._owner = made, batcher, owner
        future._outputs, future._many = outputs, many
        return future

    def __repr__(self):
        how = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<BatchFuture {how}>"

    cdef int tell(self, Waiter* waiter) except -1:
        cdef unique_ptr[Waiter] mine
        mine.reset(waiter)
        with nogil:
            self._request.tell(move(mine))
        return 0

    cdef bint is_over(self) noexcept:
        return self._request.is_over()

    def result(self, timeout=None):
        """Waits for the answer.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up; None waits for ever, 0 does not wait. The request goes on.

        Returns
        -------
        numpy.ndarray or dict[str, numpy.ndarray]
            The output, of the shape of a row, or of ``(rows, *shape)`` for `submit_many`; by name, if there are
            several. Its memory is its own.

        Thread safety: atomic. Blocks detached from the interpreter; in the main thread Ctrl-C ends the wait.

        Raises
        ------
        TimeoutError
            It was not over in time; or its batch was not within the batcher's `time_limit`.
        concurrent.futures.CancelledError
            Somebody cancelled it.
        RequestExpiredError
            Its deadline came before it was begun.
        ForwardError
            `forward` has raised an exception, which is the cause of this one.
        ClosedError
            The batcher was closed before it was begun.
        CUDAError
            What the driver said of its batch.
        """
        error = self.outcome(timeout)
        if error is not None:
            raise error
        return self.answer()

    def exception(self, timeout=None):
        """Waits for the end: what :meth:`result` would raise, or None.

        Thread safety: atomic. Blocks detached from the interpreter; in the main thread Ctrl-C ends the wait.
        """
        error = self.outcome(timeout)
        if isinstance(error, CancelledError):
            raise error
        return error

    cdef object outcome(self, object timeout):
        """Waits: None, or what it is raised as. Raises if it is not over in time."""
        cdef Limit limit = limit_of(timeout)
        cdef Status status
        with nogil:
            status = self._request.wait(limit)
        if status.ok():
            return None
        if not self._request.is_over():
            if status.reason() == Reason.interrupted:
                pass_on()
            if status.reason() == Reason.timed_out:
                raise TimeoutError("the request was not done in time; it goes on")
            raise_status(status, "wait for", self)
        if status.reason() == Reason.cancelled:
            return CancelledError()
        if status.reason() == Reason.expired:
            return RequestExpiredError("the request's deadline came before it was begun")
        if status.reason() == Reason.timed_out:
            return TimeoutError("the request's batch was not done within the batcher's time_limit; it goes on")
        if status.reason() == Reason.raised:
            cause = object_of(self._request.cause())
            error = ForwardError(f"forward raised {text_of(cause)}")
            error.__cause__ = cause
            return error
        try:
            raise_status(status, "compute", self, (("the batcher", self._owner),))
        except BaseException as error:
            return error.with_traceback(None)

    cdef object answer(self):
        cdef size_t index
        if (<RowLayout>self._outputs).sizes.size() == 1:
            return self.array(0)
        made = {}
        for index in range((<RowLayout>self._outputs).sizes.size()):
            made[(<RowLayout>self._outputs).name(index)] = self.array(index)
        return made

    cdef object array(self, size_t index):
        cdef Answer memory = Answer.__new__(Answer)
        cdef size_t rows = self._request.rows()
        self._request.retain()
        memory._request, memory._index = self._request, index
        memory._bytes = rows * (<RowLayout>self._outputs).sizes[index]
        return (<RowLayout>self._outputs).answer(index, rows, self._many, memory)

    def cancel(self):
        """Gives the request up, unless it is over. Its batch, which may have left, goes on for others.

        Returns
        -------
        bool
            Whether it is cancelled now.

        Thread safety: atomic.
        """
        cdef bint is_mine
        refuse_in_forked_child("cancel", self)
        with nogil:
            is_mine = self._batcher.cancel(self._request[0])
        return is_mine or self._request.is_cancelled()

    def cancelled(self):
        """Whether it was cancelled. Thread safety: atomic."""
        return self._request.is_cancelled()

    def running(self):
        """False: until it is over it can be cancelled. Thread safety: atomic."""
        return False

    def done(self):
        """Whether it is over, however it ended. Thread safety: atomic."""
        return self._request.is_over()

    def add_done_callback(self, fn):
        """Has `fn(future)` called when it is over, by the thread that calls functions of `when_done`.

        Functions of one future are called in the order in which they came; what one raises goes to
        ``sys.unraisablehook``.

        Thread safety: atomic.
        """
        refuse_in_forked_child("add a callback to", self)
        call_told(fn, self)

    def __await__(self):
        """Waits without blocking the thread: in asyncio and trio. A task that is cancelled cancels the request.

        Thread safety: atomic.
        """
        return awaited(self)

    # What concurrent.futures asks of the futures that wait() and as_completed() are given.

    @property
    def _state(self):
        if not watch_of(self).is_over:
            return "PENDING"
        return "CANCELLED_AND_NOTIFIED" if self._request.is_cancelled() else "FINISHED"

    @property
    def _condition(self):
        return watch_of(self).condition

    @property
    def _waiters(self):
        return watch_of(self).waiters


cdef str text_of(object error):
    """Also of an exception that has none."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:
        return kind


cdef object watch_of(BatchFuture future):
    """The first one that was made."""
    if future._request.attached() != NULL:
        return object_of(future._request.attached())
    made = Watch(future._request.is_over())
    watch = object_of(&future._request.attach(shared(foreign_reference(made))))
    if watch is made and not made.is_over:
        call_told(made.tell, future)
    return watch


def awaited(BatchFuture future not None):
    """Waits for it in a coroutine."""
    if not future._request.is_over():
        try:
            yield from until_told(future, future)
        except BaseException:
            future.cancel()
            raise
    return future.result()


refuse_to_make(BatchFuture)
