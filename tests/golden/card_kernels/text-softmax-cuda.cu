static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


extern "C" __global__ void __launch_bounds__(64) kernel(
    const float *__restrict__ x,  // f32 (4096, 1024)
    float *__restrict__ out,  // f32 (4096, 1024)
    char *__restrict__ workspace) {
    __shared__ float top_rf[64] __align__(16);  // (1, 64)
    __shared__ float top[1] __align__(16);  // (1)
    __shared__ float total_rf[64] __align__(16);  // (1, 64)
    __shared__ float total[1] __align__(16);  // (1)
    const int out_i = blockIdx.x;  // 0..4096
    const int top_rf_j_i = threadIdx.x;  // 0..64
    top_rf[top_rf_j_i] = (-__int_as_float(0x7f800000));
    for (int top_rf_j_o = 0; top_rf_j_o < 16; top_rf_j_o++) {
        top_rf[top_rf_j_i] = max_f32(top_rf[top_rf_j_i], x[out_i * 1024 + top_rf_j_i + top_rf_j_o * 64]);
    }
    if (top_rf_j_i == 0) {
        top[0] = (-__int_as_float(0x7f800000));
    }
    __syncthreads();
    if (top_rf_j_i == 0) {
        for (int top_j_i = 0; top_j_i < 64; top_j_i++) {
            top[0] = max_f32(top[0], top_rf[top_j_i]);
        }
    }
    total_rf[top_rf_j_i] = 0.0f;
    __syncthreads();
    for (int k_o = 0; k_o < 16; k_o++) {
        total_rf[top_rf_j_i] = (total_rf[top_rf_j_i] + expf((x[k_o * 64 + out_i * 1024 + top_rf_j_i] - top[0])));
    }
    if (top_rf_j_i == 0) {
        total[0] = 0.0f;
    }
    __syncthreads();
    if (top_rf_j_i == 0) {
        for (int total_k_i = 0; total_k_i < 64; total_k_i++) {
            total[0] = (total[0] + total_rf[total_k_i]);
        }
    }
    __syncthreads();
    for (int out_j_o = 0; out_j_o < 16; out_j_o++) {
        out[out_i * 1024 + out_j_o * 64 + top_rf_j_i] = (expf((x[out_i * 1024 + out_j_o * 64 + top_rf_j_i] - top[0])) / total[0]);
    }
}
