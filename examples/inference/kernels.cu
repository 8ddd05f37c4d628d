// The kernels of the examples of inference and serving. For one image each kernel is one block's work or a few warps'; further
// images are further blocks.

// Pixels from 0..16 to 0..1.
extern "C" __global__ void normalise(const float* pixels, float* activation, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) activation[index] = pixels[index] * (1.0f / 16.0f);
}

// One warp for each output: activation[o] = f(weights[o] . input + bias[o]). blockIdx.y is the image.
template <bool relu>
__global__ void dense(const float* weights, const float* bias, const float* input, float* output, int inputs, int outputs) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= outputs) return;
    input += blockIdx.y * inputs;
    output += blockIdx.y * outputs;
    float sum = 0.0f;
    for (int column = lane; column < inputs; column += 32) sum += weights[row * inputs + column] * input[column];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) {
        sum += bias[row];
        output[row] = relu ? fmaxf(sum, 0.0f) : sum;
    }
}

// One warp for each image: the index of the largest of `count` <= 32 logits; the lowest index among equals.
extern "C" __global__ void argmax(const float* logits, int count, int* digit) {
    const int lane = threadIdx.x;
    float best = lane < count ? logits[blockIdx.x * count + lane] : -3.4e38f;
    int index = lane;
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_down_sync(0xffffffffu, best, offset);
        const int other_index = __shfl_down_sync(0xffffffffu, index, offset);
        if (other > best) {
            best = other;
            index = other_index;
        }
    }
    if (lane == 0) digit[blockIdx.x] = index;
}
