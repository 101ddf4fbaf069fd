static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}

template <typename T>
static __device__ __forceinline__ T exchange(T value, int distance, int lanes) {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << (lane & ~(lanes - 1));
    return (T)__shfl_xor_sync(mask, value, distance);
}


extern "C" __global__ void __launch_bounds__(16) softmax(
    const float *__restrict__ x,  // f32 (3, 21)
    float *__restrict__ softmax,  // f32 (3, 21)
    char *__restrict__ workspace) {
    __shared__ float softmax_max_rf[1] __align__(16);  // (1, 1, 1)
    __shared__ float softmax_max[1] __align__(16);  // (1, 1)
    __shared__ float softmax_exp[21] __align__(16);  // (1, 21)
    __shared__ float softmax_sum_rf[1] __align__(16);  // (1, 1, 1)
    __shared__ float softmax_sum[1] __align__(16);  // (1, 1)
    const int i_o = blockIdx.x;  // 0..3
    const int softmax_max_rf_rj_2 = threadIdx.x;  // 0..16
    float softmax_max_rf_lane;
    float softmax_max_rf_rf;
    softmax_max_rf_rf = (-__int_as_float(0x7f800000));
    for (int softmax_max_rf_rf_rj_0 = 0; softmax_max_rf_rf_rj_0 < 2; softmax_max_rf_rf_rj_0++) {
        softmax_max_rf_rf = max_f32(softmax_max_rf_rf, ((softmax_max_rf_rf_rj_0 * 16 + softmax_max_rf_rj_2 < 21) ? x[i_o * 21 + softmax_max_rf_rf_rj_0 * 16 + softmax_max_rf_rj_2] : (-__int_as_float(0x7f800000))));
    }
    softmax_max_rf_lane = softmax_max_rf_rf;
    const float v = exchange(softmax_max_rf_lane, 8, 16);
    softmax_max_rf_lane = max_f32(softmax_max_rf_lane, v);
    const float v_2 = exchange(softmax_max_rf_lane, 4, 16);
    softmax_max_rf_lane = max_f32(softmax_max_rf_lane, v_2);
    const float v_3 = exchange(softmax_max_rf_lane, 2, 16);
    softmax_max_rf_lane = max_f32(softmax_max_rf_lane, v_3);
    const float v_4 = exchange(softmax_max_rf_lane, 1, 16);
    softmax_max_rf_lane = max_f32(softmax_max_rf_lane, v_4);
    if (softmax_max_rf_rj_2 == 0) {
        softmax_max_rf[0] = softmax_max_rf_lane;
    }
    if (softmax_max_rf_rj_2 == 0) {
        softmax_max[0] = (-__int_as_float(0x7f800000));
        softmax_max[0] = max_f32(softmax_max[0], softmax_max_rf[0]);
    }
    __syncthreads();
    for (int softmax_exp_j_0 = 0; softmax_exp_j_0 < 2; softmax_exp_j_0++) {
        if (softmax_exp_j_0 * 16 + softmax_max_rf_rj_2 < 21) {
            softmax_exp[softmax_exp_j_0 * 16 + softmax_max_rf_rj_2] = expf((x[i_o * 21 + softmax_exp_j_0 * 16 + softmax_max_rf_rj_2] - softmax_max[0]));
        }
    }
    float softmax_sum_rf_lane;
    float softmax_sum_rf_rf;
    softmax_sum_rf_rf = 0.0f;
    for (int softmax_sum_rf_rf_rj_0 = 0; softmax_sum_rf_rf_rj_0 < 2; softmax_sum_rf_rf_rj_0++) {
        softmax_sum_rf_rf = (softmax_sum_rf_rf + ((softmax_max_rf_rj_2 + softmax_sum_rf_rf_rj_0 * 16 < 21) ? softmax_exp[softmax_max_rf_rj_2 + softmax_sum_rf_rf_rj_0 * 16] : 0.0f));
    }
    softmax_sum_rf_lane = softmax_sum_rf_rf;
    const float v_5 = exchange(softmax_sum_rf_lane, 8, 16);
    softmax_sum_rf_lane = (softmax_sum_rf_lane + v_5);
    const float v_6 = exchange(softmax_sum_rf_lane, 4, 16);
    softmax_sum_rf_lane = (softmax_sum_rf_lane + v_6);
    const float v_7 = exchange(softmax_sum_rf_lane, 2, 16);
    softmax_sum_rf_lane = (softmax_sum_rf_lane + v_7);
    const float v_8 = exchange(softmax_sum_rf_lane, 1, 16);
    softmax_sum_rf_lane = (softmax_sum_rf_lane + v_8);
    if (softmax_max_rf_rj_2 == 0) {
        softmax_sum_rf[0] = softmax_sum_rf_lane;
    }
    if (softmax_max_rf_rj_2 == 0) {
        softmax_sum[0] = 0.0f;
        softmax_sum[0] = (softmax_sum[0] + softmax_sum_rf[0]);
    }
    __syncthreads();
    for (int softmax_j_0 = 0; softmax_j_0 < 2; softmax_j_0++) {
        if (softmax_j_0 * 16 + softmax_max_rf_rj_2 < 21) {
            softmax[i_o * 21 + softmax_j_0 * 16 + softmax_max_rf_rj_2] = (softmax_exp[softmax_j_0 * 16 + softmax_max_rf_rj_2] * (1.0f / softmax_sum[0]));
        }
    }
}
