// A layer of a perceptron for the rows of a batch: y = x w + b, of which a hidden layer keeps what is above zero. x is
// (rows, inputs), the weights are (outputs, inputs). C++ and ftcuda launch the same two kernels.

// One warp for each output of each row: the fastest for few rows, and for few outputs.
extern "C" __global__ void few_rows(int rows, int inputs, int outputs, int is_hidden, const float* weights, const float* bias,
                                    const float* x, float* y) {
    const int output = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32, row = blockIdx.y;
    if (output >= outputs || row >= rows) return;
    float sum = 0;
    for (int input = lane; input < inputs; input += 32) sum += weights[output * inputs + input] * x[row * inputs + input];
    for (int distance = 16; distance != 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane != 0) return;
    sum += bias[output];
    y[row * outputs + output] = is_hidden && sum < 0 ? 0 : sum;
}

// A block of 256 threads for each tile of 32 rows and 32 outputs; each thread has four rows of one output. Of the weights
// and inputs one tile lies in shared memory, and the next one is on its way in registers.
extern "C" __global__ void __launch_bounds__(256)
    many_rows(int rows, int inputs, int outputs, int is_hidden, const float* weights, const float* bias, const float* x, float* y) {
    constexpr int tile = 32, mine = 4, groups = tile / mine;
    __shared__ float w[tile][tile + 1];                   // by input; what pads it keeps stores of a warp apart
    __shared__ __align__(16) float a[tile][tile + mine];  // the same, read by four rows at once
    const int lane = threadIdx.x % tile, group = threadIdx.x / tile;
    const int first_output = blockIdx.x * tile, first_row = blockIdx.y * tile;
    float next_w[mine], next_a[mine], sums[mine] = {};
    for (int from = -tile; from < inputs; from += tile) {
        if (from >= 0) {
#pragma unroll
            for (int each = 0; each < mine; ++each) {
                w[lane][group + groups * each] = next_w[each];
                a[lane][group + groups * each] = next_a[each];
            }
            __syncthreads();
        }
        const int input = from + tile + lane;
#pragma unroll
        for (int each = 0; each < mine; ++each) {
            const int output = first_output + group + groups * each, row = first_row + group + groups * each;
            next_w[each] = input < inputs && output < outputs ? weights[output * inputs + input] : 0;
            next_a[each] = input < inputs && row < rows ? x[row * inputs + input] : 0;
        }
        if (from < 0) continue;
#pragma unroll
        for (int index = 0; index < tile; ++index) {
            const float weight = w[index][lane];
            const float4 values = *reinterpret_cast<const float4*>(&a[index][mine * group]);
            sums[0] += weight * values.x;
            sums[1] += weight * values.y;
            sums[2] += weight * values.z;
            sums[3] += weight * values.w;
        }
        __syncthreads();
    }
    const int output = first_output + lane;
    if (output >= outputs) return;
#pragma unroll
    for (int each = 0; each < mine; ++each) {
        const int row = first_row + mine * group + each;
        const float sum = sums[each] + bias[output];
        if (row < rows) y[row * outputs + output] = is_hidden && sum < 0 ? 0 : sum;
    }
}
