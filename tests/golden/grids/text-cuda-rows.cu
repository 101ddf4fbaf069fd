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


extern "C" __global__ void __launch_bounds__(128) rows(
    const float *__restrict__ x,  // f32 (64, 1000)
    float *__restrict__ out,  // f32 (64, 1000)
    char *__restrict__ workspace) {
    __shared__ float top_rf[4] __align__(16);  // (1, 4)
    __shared__ float top[1] __align__(16);  // (1)
    __shared__ float e[1000] __align__(16);  // (1, 1000)
    __shared__ float total_rf[4] __align__(16);  // (1, 4)
    __shared__ float total[1] __align__(16);  // (1)
    const int i_o = blockIdx.x;  // 0..64
    const int top_rf_j_1 = threadIdx.y;  // 0..4
    const int top_rf_j_2 = threadIdx.x;  // 0..32
    float top_rf_lane;
    float top_rf_rf;
    top_rf_rf = (-__int_as_float(0x7f800000));
    for (int top_rf_rf_j_0 = 0; top_rf_rf_j_0 < 8; top_rf_rf_j_0++) {
        top_rf_rf = max_f32(top_rf_rf, ((top_rf_j_1 * 32 + top_rf_j_2 + top_rf_rf_j_0 * 128 < 1000) ? x[i_o * 1000 + top_rf_j_1 * 32 + top_rf_j_2 + top_rf_rf_j_0 * 128] : (-__int_as_float(0x7f800000))));
    }
    top_rf_lane = top_rf_rf;
    const float v = exchange(top_rf_lane, 16, 32);
    top_rf_lane = max_f32(top_rf_lane, v);
    const float v_2 = exchange(top_rf_lane, 8, 32);
    top_rf_lane = max_f32(top_rf_lane, v_2);
    const float v_3 = exchange(top_rf_lane, 4, 32);
    top_rf_lane = max_f32(top_rf_lane, v_3);
    const float v_4 = exchange(top_rf_lane, 2, 32);
    top_rf_lane = max_f32(top_rf_lane, v_4);
    const float v_5 = exchange(top_rf_lane, 1, 32);
    top_rf_lane = max_f32(top_rf_lane, v_5);
    if (top_rf_j_2 == 0) {
        top_rf[top_rf_j_1] = top_rf_lane;
    }
    if ((top_rf_j_1 == 0) && (top_rf_j_2 == 0)) {
        top[0] = (-__int_as_float(0x7f800000));
    }
    __syncthreads();
    if ((top_rf_j_1 == 0) && (top_rf_j_2 == 0)) {
        float top_kept;
        top_kept = top[0];
        for (int top_j_1 = 0; top_j_1 < 4; top_j_1++) {
            top_kept = max_f32(top_kept, top_rf[top_j_1]);
        }
        top[0] = top_kept;
    }
    __syncthreads();
    for (int e_j_0 = 0; e_j_0 < 8; e_j_0++) {
        if (e_j_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2 < 1000) {
            e[e_j_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2] = expf((x[e_j_0 * 128 + i_o * 1000 + top_rf_j_1 * 32 + top_rf_j_2] - top[0]));
        }
    }
    float total_rf_lane;
    float total_rf_rf;
    total_rf_rf = 0.0f;
    for (int k_0 = 0; k_0 < 8; k_0++) {
        total_rf_rf = (total_rf_rf + ((k_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2 < 1000) ? e[k_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2] : 0.0f));
    }
    total_rf_lane = total_rf_rf;
    const float v_6 = exchange(total_rf_lane, 16, 32);
    total_rf_lane = (total_rf_lane + v_6);
    const float v_7 = exchange(total_rf_lane, 8, 32);
    total_rf_lane = (total_rf_lane + v_7);
    const float v_8 = exchange(total_rf_lane, 4, 32);
    total_rf_lane = (total_rf_lane + v_8);
    const float v_9 = exchange(total_rf_lane, 2, 32);
    total_rf_lane = (total_rf_lane + v_9);
    const float v_10 = exchange(total_rf_lane, 1, 32);
    total_rf_lane = (total_rf_lane + v_10);
    if (top_rf_j_2 == 0) {
        total_rf[top_rf_j_1] = total_rf_lane;
    }
    if ((top_rf_j_1 == 0) && (top_rf_j_2 == 0)) {
        total[0] = 0.0f;
    }
    __syncthreads();
    if ((top_rf_j_1 == 0) && (top_rf_j_2 == 0)) {
        float total_kept;
        total_kept = total[0];
        for (int total_k_1 = 0; total_k_1 < 4; total_k_1++) {
            total_kept = (total_kept + total_rf[total_k_1]);
        }
        total[0] = total_kept;
    }
    __syncthreads();
    for (int out_j_0 = 0; out_j_0 < 8; out_j_0++) {
        if (out_j_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2 < 1000) {
            out[i_o * 1000 + out_j_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2] = (e[out_j_0 * 128 + top_rf_j_1 * 32 + top_rf_j_2] / total[0]);
        }
    }
}
