
extern "C" __global__ void __launch_bounds__(64) kernel(
    const float *__restrict__ a,  // f32 (64, 16384)
    const float *__restrict__ b,  // f32 (16384, 64)
    float *__restrict__ c,  // f32 (64, 64)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    __shared__ float a_c_rf_cache[512] __align__(16);  // (32, 16)
    __shared__ float b_c_rf_cache[512] __align__(16);  // (16, 32)
    const int c_rf_k_o = blockIdx.z;  // 0..8
    const int i_0 = blockIdx.y;  // 0..2
    const int j_0 = blockIdx.x;  // 0..2
    const int i_1 = threadIdx.y;  // 0..8
    const int j_1 = threadIdx.x;  // 0..8
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2++) {
        *(float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2 * 64 + j_0 * 32 + j_1 * 4] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int k_i_o = 0; k_i_o < 128; k_i_o++) {
        __syncthreads();
        for (int a_c_rf_cache_d0_d1_0 = 0; a_c_rf_cache_d0_d1_0 < 2; a_c_rf_cache_d0_d1_0++) {
            *(float4 *)&a_c_rf_cache[a_c_rf_cache_d0_d1_0 * 256 + i_1 * 32 + j_1 * 4] = (*(const float4 *)&a[((j_1) % 4) * 4 + ((j_1) / 4) * 16384 + a_c_rf_cache_d0_d1_0 * 262144 + c_rf_k_o * 2048 + i_0 * 524288 + i_1 * 32768 + k_i_o * 16]);
        }
        for (int b_c_rf_cache_d0_d1_0 = 0; b_c_rf_cache_d0_d1_0 < 2; b_c_rf_cache_d0_d1_0++) {
            *(float4 *)&b_c_rf_cache[b_c_rf_cache_d0_d1_0 * 256 + i_1 * 32 + j_1 * 4] = (*(const float4 *)&b[b_c_rf_cache_d0_d1_0 * 512 + c_rf_k_o * 131072 + i_1 * 64 + j_0 * 32 + j_1 * 4 + k_i_o * 1024]);
        }
        __syncthreads();
        #pragma unroll
        for (int k_i_i = 0; k_i_i < 16; k_i_i++) {
            #pragma unroll
            for (int i_2_2 = 0; i_2_2 < 4; i_2_2++) {
                const float v = a_c_rf_cache[i_1 * 64 + i_2_2 * 16 + k_i_i];
                const float4 v_2 = (*(float4 *)&b_c_rf_cache[j_1 * 4 + k_i_i * 32]);
                const float4 v_3 = (*(float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2_2 * 64 + j_0 * 32 + j_1 * 4]);
                const float4 v_4 = make_float4((v * v_2.x), (v * v_2.y), (v * v_2.z), (v * v_2.w));
                *(float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2_2 * 64 + j_0 * 32 + j_1 * 4] = make_float4((v_3.x + v_4.x), (v_3.y + v_4.y), (v_3.z + v_4.z), (v_3.w + v_4.w));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(64) kernel_1(
    const float *__restrict__ a,  // f32 (64, 16384)
    const float *__restrict__ b,  // f32 (16384, 64)
    float *__restrict__ c,  // f32 (64, 64)
    char *__restrict__ workspace) {
    float *__restrict__ c_rf = (float *)(workspace + 0);
    const int c_i = blockIdx.y;  // 0..64
    const int j_i = threadIdx.x;  // 0..64
    c[c_i * 64 + j_i] = 0.0f;
    #pragma unroll
    for (int c_k_o = 0; c_k_o < 8; c_k_o++) {
        c[c_i * 64 + j_i] = (c[c_i * 64 + j_i] + c_rf[c_i * 64 + c_k_o * 4096 + j_i]);
    }
}
