
extern "C" __global__ void __launch_bounds__(64) split(
    const float *__restrict__ a,  // f32 (16, 1024)
    const float *__restrict__ b,  // f32 (1024, 32)
    float *__restrict__ c,  // f32 (16, 32)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    __shared__ float a_c_rf_cache_cache[128] __align__(16);  // (8, 16)
    __shared__ float b_c_rf_cache_cache[128] __align__(16);  // (16, 8)
    const int k_o_0_i_0_j_0 = blockIdx.x;  // 0..64
    const int k_o_1_i_1_j_1 = threadIdx.x;  // 0..64
    float c_rf_cache;
    c_rf_cache = 0.0f;
    for (int k_i_o = 0; k_i_o < 8; k_i_o++) {
        __syncthreads();
        for (int d0_d1_o = 0; d0_d1_o < 2; d0_d1_o++) {
            a_c_rf_cache_cache[d0_d1_o * 64 + k_o_1_i_1_j_1] = a[((((k_o_0_i_0_j_0) / 4)) % 2) * 8192 + ((k_o_0_i_0_j_0) / 8) * 128 + ((k_o_1_i_1_j_1) % 16) + ((k_o_1_i_1_j_1) / 16) * 1024 + d0_d1_o * 4096 + k_i_o * 16];
        }
        if (k_o_1_i_1_j_1 < 32) {
            *(float4 *)&b_c_rf_cache_cache[k_o_1_i_1_j_1 * 4] = (*(const float4 *)&b[((k_o_0_i_0_j_0) % 4) * 8 + ((k_o_0_i_0_j_0) / 8) * 4096 + ((k_o_1_i_1_j_1) % 2) * 4 + ((k_o_1_i_1_j_1) / 2) * 32 + k_i_o * 512]);
        }
        __syncthreads();
        for (int k_i_i = 0; k_i_i < 16; k_i_i++) {
            c_rf_cache = (c_rf_cache + (a_c_rf_cache_cache[((k_o_1_i_1_j_1) / 8) * 16 + k_i_i] * b_c_rf_cache_cache[((k_o_1_i_1_j_1) % 8) + k_i_i * 8]));
        }
    }
    c_rf[((k_o_0_i_0_j_0) % 4) * 8 + ((k_o_0_i_0_j_0) / 4) * 256 + ((k_o_1_i_1_j_1) % 8) + ((k_o_1_i_1_j_1) / 8) * 32] = c_rf_cache;
}

extern "C" __global__ void __launch_bounds__(32) split_1(
    const float *__restrict__ a,  // f32 (16, 1024)
    const float *__restrict__ b,  // f32 (1024, 32)
    float *__restrict__ c,  // f32 (16, 32)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    const int i_j_0 = blockIdx.x;  // 0..16
    const int i_j_2 = threadIdx.x;  // 0..32
    c[i_j_0 * 32 + i_j_2] = 0.0f;
    float c_kept;
    c_kept = c[i_j_0 * 32 + i_j_2];
    for (int c_k_o = 0; c_k_o < 8; c_k_o++) {
        c_kept = (c_kept + c_rf[c_k_o * 512 + i_j_0 * 32 + i_j_2]);
    }
    c[i_j_0 * 32 + i_j_2] = c_kept;
}
