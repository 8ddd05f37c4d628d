cdef extern from "_core/stream/capture_session.hpp" namespace "ftcuda::core" nogil:
    cppclass CaptureSession:
        pass
