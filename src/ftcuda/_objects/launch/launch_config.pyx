"""Shapes of launches."""

cimport core.launch.launch as core


cdef tuple dimensions(object value, str name):
    """`value` as three positive ints."""
    if hasattr(value, "__index__") and not isinstance(value, bool) and not getattr(value, "shape", ()):
        value = (value,)  # a numpy integer too, but not an array
    if not isinstance(value, (tuple, list)) or not 1 <= len(value) <= 3:
        raise ValueError(f"{name} must be an int or a tuple of one to three ints, not {value!r}")
    result = []
    for number in (*value, 1, 1)[:3]:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must hold ints, not {type(number).__name__}")
        number = number.__index__()
        if not 1 <= number < 2**31:
            raise ValueError(f"{name} must be from 1 to 2**31 - 1 in each dimension, not {number}")
        result.append(number)
    return tuple(result)


cdef core.Dimensions as_dimensions(tuple value):
    cdef core.Dimensions result
    result.x, result.y, result.z = value
    return result


cdef class LaunchConfig:
    """Shape of a launch. Constant, and shared by any number of threads. Configurations of the same shape are equal.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks; clusters when `cluster` is given.
    cluster : int or tuple of int, optional
        Blocks per cluster (compute capability 9.0 and up).
    block : int or tuple of int
        Threads per block.
    shmem_size : int, optional
        Bytes of dynamic shared memory per block. None is 0.
    is_cooperative : bool
        All blocks are resident at once and may synchronise with each other.
    programmatic_stream_serialization : bool
        The kernel may start before the one before it in the stream has ended, at a point that one chooses.

    Thread safety: atomic.
    """

    def __cinit__(self, grid=None, cluster=None, block=None, shmem_size=0, is_cooperative=False,
                  programmatic_stream_serialization=False):
        cdef core.Dimensions cluster_dimensions
        cdef const core.Dimensions* in_cluster = NULL
        if grid is None or block is None:
            raise ValueError("grid and block must be given")
        self.grid = dimensions(grid, "grid")
        self.block = dimensions(block, "block")
        self.cluster = None if cluster is None else dimensions(cluster, "cluster")
        if shmem_size is None:
            shmem_size = 0
        if isinstance(shmem_size, bool) or not hasattr(shmem_size, "__index__"):
            raise TypeError(f"shmem_size must be an int, not {type(shmem_size).__name__}")
        shmem_size = shmem_size.__index__()
        if not 0 <= shmem_size < 2**31:
            raise ValueError(f"shmem_size must be from 0 to 2**31 - 1 bytes, not {shmem_size}")
        self.shmem_size = shmem_size
        self.is_cooperative = bool(is_cooperative)
        self.programmatic_stream_serialization = bool(programmatic_stream_serialization)
        if cluster is not None:
            for of_grid, of_cluster in zip(self.grid, self.cluster):
                if of_grid * of_cluster >= 2**31:
                    raise ValueError(
                        f"grid times cluster must be below 2**31 in each dimension, not {of_grid * of_cluster}"
                    )
            cluster_dimensions = as_dimensions(self.cluster)
            in_cluster = &cluster_dimensions
        self._shape = new core.LaunchShape(
            as_dimensions(self.grid), as_dimensions(self.block), in_cluster, self.shmem_size, self.is_cooperative,
            self.programmatic_stream_serialization)

    def __dealloc__(self):
        del self._shape

    def _identity(self):
        return (self.grid, self.cluster, self.block, self.shmem_size, self.is_cooperative,
                self.programmatic_stream_serialization)

    def __eq__(self, other):
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __reduce__(self):
        return LaunchConfig, self._identity()  # for copies, and for other processes

    def __repr__(self):
        return (
            f"LaunchConfig(grid={self.grid}, cluster={self.cluster}, block={self.block}, shmem_size={self.shmem_size}, "
            f"is_cooperative={self.is_cooperative}, "
            f"programmatic_stream_serialization={self.programmatic_stream_serialization})"
        )
