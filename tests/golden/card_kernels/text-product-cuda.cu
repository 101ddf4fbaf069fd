
extern "C" __global__ void __launch_bounds__(256) kernel(
    const float *__restrict__ a,  // f32 (1024, 1024)
    const float *__restrict__ b,  // f32 (1024, 1024)
    float *__restrict__ c,  // f32 (1024, 1024)
    char *__restrict__ workspace) {
    __shared__ float a_c_cache_cache[2048] __align__(16);  // (2, 128, 8)
    __shared__ float b_c_cache_cache[2048] __align__(16);  // (2, 8, 128)
    const int i_0 = blockIdx.y;  // 0..8
    const int j_0 = blockIdx.x;  // 0..8
    const int i_1 = threadIdx.y;  // 0..16
    const int j_1 = threadIdx.x;  // 0..16
    float c_cache[64] __align__(16);  // (8, 8)
    #pragma unroll
    for (int c_cache_i = 0; c_cache_i < 8; c_cache_i++) {
        #pragma unroll
        for (int j_o = 0; j_o < 2; j_o++) {
            *(float4 *)&c_cache[c_cache_i * 8 + j_o * 4] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    *(float4 *)&a_c_cache_cache[i_1 * 64 + j_1 * 4] = (*(const float4 *)&a[((j_1) % 2) * 4 + ((j_1) / 2) * 1024 + i_0 * 131072 + i_1 * 8192]);
    *(float4 *)&b_c_cache_cache[i_1 * 64 + j_1 * 4] = (*(const float4 *)&b[((i_1) % 2) * 64 + ((i_1) / 2) * 1024 + j_0 * 128 + j_1 * 4]);
    for (int k_o = 0; k_o < 128; k_o++) {
        float a_c_cache_cache_next[4] __align__(16);
        float b_c_cache_cache_next[4] __align__(16);
        if (k_o < 127) {
            *(float4 *)&a_c_cache_cache_next[0] = (*(const float4 *)&a[((j_1) % 2) * 4 + ((j_1) / 2) * 1024 + i_0 * 131072 + i_1 * 8192 + k_o * 8 + 8]);
            *(float4 *)&b_c_cache_cache_next[0] = (*(const float4 *)&b[((i_1) % 2) * 64 + ((i_1) / 2) * 1024 + j_0 * 128 + j_1 * 4 + k_o * 8192 + 8192]);
        }
        __syncthreads();
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i++) {
            #pragma unroll
            for (int c_cache_i_2 = 0; c_cache_i_2 < 8; c_cache_i_2++) {
                #pragma unroll
                for (int j_o_2 = 0; j_o_2 < 2; j_o_2++) {
                    const float v = a_c_cache_cache[((k_o) % 2) * 1024 + c_cache_i_2 * 8 + i_1 * 64 + k_i];
                    const float4 v_2 = (*(float4 *)&b_c_cache_cache[((k_o) % 2) * 1024 + j_1 * 8 + j_o_2 * 4 + k_i * 128]);
                    const float4 v_3 = (*(float4 *)&c_cache[c_cache_i_2 * 8 + j_o_2 * 4]);
                    const float4 v_4 = make_float4((v * v_2.x), (v * v_2.y), (v * v_2.z), (v * v_2.w));
                    *(float4 *)&c_cache[c_cache_i_2 * 8 + j_o_2 * 4] = make_float4((v_3.x + v_4.x), (v_3.y + v_4.y), (v_3.z + v_4.z), (v_3.w + v_4.w));
                }
            }
        }
        if (k_o < 127) {
            *(float4 *)&a_c_cache_cache[((k_o + 1) % 2) * 1024 + i_1 * 64 + j_1 * 4] = (*(float4 *)&a_c_cache_cache_next[0]);
            *(float4 *)&b_c_cache_cache[((k_o + 1) % 2) * 1024 + i_1 * 64 + j_1 * 4] = (*(float4 *)&b_c_cache_cache_next[0]);
        }
    }
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2++) {
        #pragma unroll
        for (int j_2_o = 0; j_2_o < 2; j_2_o++) {
            *(float4 *)&c[i_0 * 131072 + i_1 * 8192 + i_2 * 1024 + j_0 * 128 + j_1 * 8 + j_2_o * 4] = (*(float4 *)&c_cache[i_2 * 8 + j_2_o * 4]);
        }
    }
}
