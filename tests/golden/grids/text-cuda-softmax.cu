static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


extern "C" __global__ void __launch_bounds__(3) softmax(
    const float *__restrict__ x,  // f32 (3, 21)
    float *__restrict__ softmax,  // f32 (3, 21)
    char *__restrict__ workspace) {
    float *__restrict__ softmax_max = (float *)(workspace + 320);
    const int softmax_max_i_j_i = threadIdx.x;  // 0..3
    softmax_max[softmax_max_i_j_i] = (-__int_as_float(0x7f800000));
    float softmax_max_kept;
    softmax_max_kept = softmax_max[softmax_max_i_j_i];
    for (int softmax_max_rj = 0; softmax_max_rj < 21; softmax_max_rj++) {
        softmax_max_kept = max_f32(softmax_max_kept, x[softmax_max_i_j_i * 21 + softmax_max_rj]);
    }
    softmax_max[softmax_max_i_j_i] = softmax_max_kept;
}

extern "C" __global__ void __launch_bounds__(32) softmax_1(
    const float *__restrict__ x,  // f32 (3, 21)
    float *__restrict__ softmax,  // f32 (3, 21)
    char *__restrict__ workspace) {
    float *__restrict__ softmax_exp = (float *)(workspace + 64);
    float *__restrict__ softmax_max = (float *)(workspace + 320);
    const int softmax_exp_i_j_o = blockIdx.x;  // 0..2
    const int softmax_exp_i_j_i = threadIdx.x;  // 0..32
    if (softmax_exp_i_j_i + softmax_exp_i_j_o * 32 < 63) {
        softmax_exp[softmax_exp_i_j_i + softmax_exp_i_j_o * 32] = expf((x[softmax_exp_i_j_i + softmax_exp_i_j_o * 32] - softmax_max[((softmax_exp_i_j_i + softmax_exp_i_j_o * 32) / 21)]));
    }
}

extern "C" __global__ void __launch_bounds__(3) softmax_2(
    const float *__restrict__ x,  // f32 (3, 21)
    float *__restrict__ softmax,  // f32 (3, 21)
    char *__restrict__ workspace) {
    float *__restrict__ softmax_sum = (float *)(workspace + 0);
    float *__restrict__ softmax_exp = (float *)(workspace + 64);
    const int softmax_sum_i_j_i = threadIdx.x;  // 0..3
    softmax_sum[softmax_sum_i_j_i] = 0.0f;
    float softmax_sum_kept;
    softmax_sum_kept = softmax_sum[softmax_sum_i_j_i];
    for (int softmax_sum_rj = 0; softmax_sum_rj < 21; softmax_sum_rj++) {
        softmax_sum_kept = (softmax_sum_kept + softmax_exp[softmax_sum_i_j_i * 21 + softmax_sum_rj]);
    }
    softmax_sum[softmax_sum_i_j_i] = softmax_sum_kept;
}

extern "C" __global__ void __launch_bounds__(32) softmax_3(
    const float *__restrict__ x,  // f32 (3, 21)
    float *__restrict__ softmax,  // f32 (3, 21)
    char *__restrict__ workspace) {
    float *__restrict__ softmax_sum = (float *)(workspace + 0);
    float *__restrict__ softmax_exp = (float *)(workspace + 64);
    const int softmax_i_j_o = blockIdx.x;  // 0..2
    const int softmax_i_j_i = threadIdx.x;  // 0..32
    if (softmax_i_j_i + softmax_i_j_o * 32 < 63) {
        softmax[softmax_i_j_i + softmax_i_j_o * 32] = (softmax_exp[softmax_i_j_i + softmax_i_j_o * 32] * (1.0f / softmax_sum[((softmax_i_j_i + softmax_i_j_o * 32) / 21)]));
    }
}
