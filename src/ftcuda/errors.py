"""What ftcuda raises. Every exception says what to do next, where there is something to do."""

__all__ = [
    "CUDAError",
    "CUDAWarning",
    "ClosedError",
    "ContextPoisonedError",
    "CooperativeLaunchError",
    "DriverNotFoundError",
    "ForkedProcessError",
    "ForwardError",
    "LinkerError",
    "NVRTCError",
    "NotSupportedError",
    "OutOfMemoryError",
    "QueueFullError",
    "RequestExpiredError",
    "SectionAbandonedError",
]


class CUDAError(Exception):
    """The CUDA driver refused a call or reported a failure.

    Attributes
    ----------
    code : int
        The driver's ``CUresult``; 0 where the failure is not the driver's.
    name : str
        The name of the code, for instance ``"CUDA_ERROR_INVALID_VALUE"``.
    entry_point : str
        The driver function that reported it, for instance ``"cuStreamSynchronize"``.
    """

    def __init__(self, message: str = "", code: int = 0, name: str = "", entry_point: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.entry_point = entry_point


class OutOfMemoryError(CUDAError, MemoryError):
    """No memory was left, also after unused memory had been collected and given back."""


class CooperativeLaunchError(CUDAError, ValueError):
    """The blocks of a cooperative launch do not all fit on the device at once; nothing was launched."""


class ContextPoisonedError(CUDAError):
    """An earlier failure ended the device's context; nothing works in it until the process is restarted.

    ``entry_point``, ``code`` and ``name`` are those of the call that first reported the failure.
    """


class NotSupportedError(CUDAError):
    """The device, its driver or its mode lacks a feature. The message names what would have it."""


class NVRTCError(CUDAError):
    """A program did not compile.

    Attributes
    ----------
    log : str
        What the compiler had to say.
    """

    def __init__(self, message: str = "", log: str = "") -> None:
        super().__init__(message)
        self.log = log


class LinkerError(CUDAError):
    """Object code was not linked.

    Attributes
    ----------
    log : str
        What the linker had to say.
    """

    def __init__(self, message: str = "", log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ClosedError(RuntimeError):
    """The object was closed, perhaps by another thread."""


class SectionAbandonedError(RuntimeError):
    """The stream's exclusive section was never ended: its thread or task ended inside, or the section was lost.

    Raised once, by the next call that submits to the stream or enters a section; nothing of that call was submitted.
    The section is over then. What was submitted in it may be a part only of what was meant.
    """


class QueueFullError(RuntimeError):
    """A batcher takes no more requests now: as many rows wait as may."""


class RequestExpiredError(TimeoutError):
    """A request's deadline came before it was begun."""


class ForwardError(RuntimeError):
    """The function that computes a batch has raised an exception, which is the cause of this one.

    It fails the requests of its own batch, and no others.
    """


class DriverNotFoundError(RuntimeError):
    """No usable driver was found. The message says where it was looked for."""


class ForkedProcessError(RuntimeError):
    """This process was forked from one that used CUDA. CUDA does not survive a fork; use the ``spawn`` start method."""


class CUDAWarning(RuntimeWarning):
    """A failure in a destructor, which had nobody to raise to."""
