
extern "C" __global__ void __launch_bounds__(32) split(
    const float *__restrict__ a,  // f32 (16, 1024)
    const float *__restrict__ b,  // f32 (1024, 32)
    float *__restrict__ c,  // f32 (16, 32)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    __shared__ float c_rf_left[256] __align__(16);  // (2, 1, 16, 4)
    __shared__ float c_rf_right[256] __align__(16);  // (2, 1, 16, 8)
    const int k_o_i_0_j_0 = blockIdx.x;  // 0..128
    const int i_2_j_2 = threadIdx.x;  // 0..32
    float c_rf_product;
    c_rf_product = 0.0f;
    if (i_2_j_2 < 16) {
        const float4 v = (*(const float4 *)&a[((((k_o_i_0_j_0) / 4)) % 4) * 4096 + ((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + ((k_o_i_0_j_0) / 16) * 128]);
        c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4)] = v.x;
        c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + 8] = v.y;
        c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + 16] = v.z;
        c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + 24] = v.w;
    }
    *(float4 *)&c_rf_right[i_2_j_2 * 4] = (*(const float4 *)&b[((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 16) * 4096]);
    for (int k_i_0 = 0; k_i_0 < 8; k_i_0++) {
        float c_rf_left_next[4] __align__(16);
        float c_rf_right_next[4] __align__(16);
        if (k_i_0 < 7) {
            if (i_2_j_2 < 16) {
                *(float4 *)&c_rf_left_next[0] = (*(const float4 *)&a[((((k_o_i_0_j_0) / 4)) % 4) * 4096 + ((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + ((k_o_i_0_j_0) / 16) * 128 + k_i_0 * 16 + 16]);
            }
            *(float4 *)&c_rf_right_next[0] = (*(const float4 *)&b[((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 16) * 4096 + k_i_0 * 512 + 512]);
        }
        __syncthreads();
        for (int k_i_1 = 0; k_i_1 < 2; k_i_1++) {
            #pragma unroll
            for (int k_i_2 = 0; k_i_2 < 8; k_i_2++) {
                c_rf_product = (c_rf_product + (c_rf_left[((i_2_j_2) / 8) + ((k_i_0) % 2) * 128 + k_i_1 * 64 + k_i_2 * 8] * c_rf_right[((i_2_j_2) % 8) + ((k_i_0) % 2) * 128 + k_i_1 * 64 + k_i_2 * 8]));
            }
        }
        if (k_i_0 < 7) {
            if (i_2_j_2 < 16) {
                const float4 v_2 = (*(float4 *)&c_rf_left_next[0]);
                c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 128] = v_2.x;
                c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 128 + 8] = v_2.y;
                c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 128 + 16] = v_2.z;
                c_rf_left[((i_2_j_2) % 4) * 32 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 128 + 24] = v_2.w;
            }
            *(float4 *)&c_rf_right[((k_i_0 + 1) % 2) * 128 + i_2_j_2 * 4] = (*(float4 *)&c_rf_right_next[0]);
        }
    }
    c_rf[((i_2_j_2) % 8) + ((i_2_j_2) / 8) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 4) * 128] = c_rf_product;
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
