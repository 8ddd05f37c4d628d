import pytest

from tests.kernels import compile_code

SOURCE = """
extern "C" __global__ void scale(const float* source, float* target, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) target[i] = factor * source[i];
}
"""


@pytest.fixture(scope="session")
def interop_code():
    code = compile_code(SOURCE)
    code.get_kernel("scale")  # loads it, so that no test finds a new module
    return code
