
extern "C" __global__ void __launch_bounds__(64) split(
    const float *__restrict__ a,  // f32 (16, 1024)
    const float *__restrict__ b,  // f32 (1024, 32)
    float *__restrict__ c,  // f32 (16, 32)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    __shared__ float c_rf_left[1536] __align__(16);  // (2, 1, 64, 8)
    __shared__ float c_rf_right[1024] __align__(16);  // (2, 1, 64, 8)
    const int k_o_i_0_j_0 = blockIdx.x;  // 0..64
    const int i_2_j_2 = threadIdx.x;  // 0..64
    float c_rf_product;
    c_rf_product = 0.0f;
    for (int k_o_i_k_i_0 = 0; k_o_i_k_i_0 < 2; k_o_i_k_i_0++) {
        const float4 v = (*(const float4 *)&a[((((k_o_i_0_j_0) / 4)) % 2) * 8192 + ((i_2_j_2) % 16) * 4 + ((i_2_j_2) / 16) * 1024 + ((k_o_i_0_j_0) / 8) * 128 + k_o_i_k_i_0 * 4096]);
        c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0 * 4] = v.x;
        c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0 * 4 + 12] = v.y;
        c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0 * 4 + 24] = v.z;
        c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0 * 4 + 36] = v.w;
    }
    for (int k_o_k_i_j_0 = 0; k_o_k_i_j_0 < 2; k_o_k_i_j_0++) {
        *(float4 *)&c_rf_right[i_2_j_2 * 4 + k_o_k_i_j_0 * 256] = (*(const float4 *)&b[((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 8) * 4096 + k_o_k_i_j_0 * 1024]);
    }
    for (int k_i_0 = 0; k_i_0 < 2; k_i_0++) {
        float c_rf_left_next[8] __align__(16);  // (2, 4)
        float c_rf_right_next[8] __align__(16);  // (2, 4)
        if (k_i_0 < 1) {
            #pragma unroll
            for (int k_o_i_k_i_0_2 = 0; k_o_i_k_i_0_2 < 2; k_o_i_k_i_0_2++) {
                *(float4 *)&c_rf_left_next[k_o_i_k_i_0_2 * 4] = (*(const float4 *)&a[((((k_o_i_0_j_0) / 4)) % 2) * 8192 + ((i_2_j_2) % 16) * 4 + ((i_2_j_2) / 16) * 1024 + ((k_o_i_0_j_0) / 8) * 128 + k_o_i_k_i_0_2 * 4096 + 64]);
            }
            #pragma unroll
            for (int k_o_k_i_j_0_2 = 0; k_o_k_i_j_0_2 < 2; k_o_k_i_j_0_2++) {
                *(float4 *)&c_rf_right_next[k_o_k_i_j_0_2 * 4] = (*(const float4 *)&b[((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 8) * 4096 + k_o_k_i_j_0_2 * 1024 + 2048]);
            }
        }
        __syncthreads();
        for (int k_i_1 = 0; k_i_1 < 8; k_i_1++) {
            #pragma unroll
            for (int k_i_2 = 0; k_i_2 < 8; k_i_2++) {
                c_rf_product = (c_rf_product + (c_rf_left[((i_2_j_2) / 8) + k_i_0 * 768 + k_i_1 * 96 + k_i_2 * 12] * c_rf_right[((i_2_j_2) % 8) + k_i_0 * 512 + k_i_1 * 64 + k_i_2 * 8]));
            }
        }
        if (k_i_0 < 1) {
            #pragma unroll
            for (int k_o_i_k_i_0_3 = 0; k_o_i_k_i_0_3 < 2; k_o_i_k_i_0_3++) {
                const float4 v_2 = (*(float4 *)&c_rf_left_next[k_o_i_k_i_0_3 * 4]);
                c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0_3 * 4 + 768] = v_2.x;
                c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0_3 * 4 + 780] = v_2.y;
                c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0_3 * 4 + 792] = v_2.z;
                c_rf_left[((i_2_j_2) % 16) * 48 + ((i_2_j_2) / 16) + k_o_i_k_i_0_3 * 4 + 804] = v_2.w;
            }
            #pragma unroll
            for (int k_o_k_i_j_0_3 = 0; k_o_k_i_j_0_3 < 2; k_o_k_i_j_0_3++) {
                *(float4 *)&c_rf_right[i_2_j_2 * 4 + k_o_k_i_j_0_3 * 256 + 512] = (*(float4 *)&c_rf_right_next[k_o_k_i_j_0_3 * 4]);
            }
        }
    }
    c_rf[((i_2_j_2) % 8) + ((i_2_j_2) / 8) * 32 + ((k_o_i_0_j_0) % 4) * 8 + ((k_o_i_0_j_0) / 4) * 256] = c_rf_product;
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
