"""Packing of launch arguments: whatever is passed arrives bit by bit, or is refused before anything is launched."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, launch
from tests.kernels import compile_code

pytestmark = pytest.mark.thread_unsafe(reason="hypothesis draws for one thread")

ONE = LaunchConfig(grid=1, block=1)
TYPES = {
    "char": np.int8,
    "short": np.int16,
    "int": np.int32,
    "long long": np.int64,
    "float": np.float32,
    "double": np.float64,
}
ANYTHING = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=9),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.just(object()),
)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def stores():
    """For each type a kernel that stores its second argument where the first points, with one parameter around it each."""
    source = "".join(
        f'extern "C" __global__ void store_{name.replace(" ", "_")}(char a, {name}* out, {name} value, char b) {{ if (a == 1 && b == 2) *out = value; }}\n'
        for name in TYPES
    )
    code = compile_code(source)
    return {name: code.get_kernel(f"store_{name.replace(' ', '_')}") for name in TYPES}


@pytest.fixture(scope="module")
def place():
    """Eight bytes that host and device reach, and a view of them."""
    buffer = LegacyPinnedMemoryResource().allocate(8)
    return buffer, np.frombuffer(buffer, np.uint8)


def stored(stream, kernel, place, value, size):
    """Returns the bytes that a launch with `value` stored."""
    buffer, view = place
    view[:] = 0xEE
    launch(stream, ONE, kernel, 1, buffer, value, 2)
    stream.sync()
    assert (view[size:] == 0xEE).all()
    return view[:size].tobytes()


@pytest.mark.parametrize("name", ["char", "short", "int", "long long"])
@QUICK
@given(
    value=st.one_of(st.integers(-(2**65), 2**65), st.sampled_from([2**k + d for k in range(65) for d in (-1, 0, 1)]))
)
def test_integers(name, value, stores, place, stream):
    size = np.dtype(TYPES[name]).itemsize
    if -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size):
        assert stored(stream, stores[name], place, value, size) == (value % 2 ** (8 * size)).to_bytes(size, "little")
    else:
        with pytest.raises(OverflowError):
            stored(stream, stores[name], place, value, size)


@pytest.mark.parametrize("name", ["float", "double"])
@QUICK
@given(value=st.one_of(st.floats(width=32), st.integers(-(2**24), 2**24)))
def test_floats(name, value, stores, place, stream):
    wanted = TYPES[name](value)
    got = np.frombuffer(stored(stream, stores[name], place, value, wanted.nbytes), wanted.dtype)[0]
    assert got == wanted or (np.isnan(got) and np.isnan(wanted))


@pytest.mark.parametrize("name", TYPES)
@QUICK
@given(data=st.data())
def test_numpy_scalars(name, data, stores, place, stream):
    """Of the parameter's size and kind they arrive bit by bit; of another they are refused."""
    dtype = np.dtype(
        data.draw(
            st.sampled_from([np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.float32, np.float64])
        )
    )
    value = np.frombuffer(data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)), dtype)[0]
    size = np.dtype(TYPES[name]).itemsize
    if dtype.itemsize == size and (dtype.kind == "f") == (np.dtype(TYPES[name]).kind == "f"):
        assert stored(stream, stores[name], place, value, size) == value.tobytes()
    else:
        with pytest.raises((TypeError, ValueError)):
            stored(stream, stores[name], place, value, size)


@pytest.mark.parametrize("name", TYPES)
@QUICK
@given(value=ANYTHING)
def test_anything_else_is_refused(name, value, stores, place, stream):
    size = np.dtype(TYPES[name]).itemsize
    if isinstance(value, bytes) and len(value) == size:
        assert stored(stream, stores[name], place, value, size) == value
    else:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            stored(stream, stores[name], place, value, size)


@QUICK
@given(count=st.integers(0, 8).filter(lambda count: count != 4))
def test_wrong_counts(count, stores, stream):
    with pytest.raises(TypeError, match="store_int"):
        launch(stream, ONE, stores["int"], *range(count))
