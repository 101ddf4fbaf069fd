
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void t_kernel(
    __global const char *a_buffer, const long a_first,  // f32 (1024, 1024)
    __global const char *b_buffer, const long b_first,  // f32 (1024, 1024)
    __global char *c_buffer, const long c_first,  // f32 (1024, 1024)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __local float a_c_cache_cache[2048] __attribute__((aligned(16)));  // (2, 128, 8)
    __local float b_c_cache_cache[2048] __attribute__((aligned(16)));  // (2, 8, 128)
    const int i_0 = get_group_id(1);  // 0..8
    const int j_0 = get_group_id(0);  // 0..8
    const int i_1 = get_local_id(1);  // 0..16
    const int j_1 = get_local_id(0);  // 0..16
    float c_cache[64] __attribute__((aligned(16)));  // (8, 8)
    #pragma unroll
    for (int c_cache_i = 0; c_cache_i < 8; c_cache_i++) {
        #pragma unroll
        for (int j_o = 0; j_o < 2; j_o++) {
            *(float4 *)&c_cache[c_cache_i * 8 + j_o * 4] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    *(__local float4 *)&a_c_cache_cache[i_1 * 64 + j_1 * 4] = (*(__global const float4 *)&a[((j_1) % 2) * 4 + ((j_1) / 2) * 1024 + i_0 * 131072 + i_1 * 8192]);
    *(__local float4 *)&b_c_cache_cache[i_1 * 64 + j_1 * 4] = (*(__global const float4 *)&b[((i_1) % 2) * 64 + ((i_1) / 2) * 1024 + j_0 * 128 + j_1 * 4]);
    for (int k_o = 0; k_o < 128; k_o++) {
        float a_c_cache_cache_next[4] __attribute__((aligned(16)));
        float b_c_cache_cache_next[4] __attribute__((aligned(16)));
        if (k_o < 127) {
            *(float4 *)&a_c_cache_cache_next[0] = (*(__global const float4 *)&a[((j_1) % 2) * 4 + ((j_1) / 2) * 1024 + i_0 * 131072 + i_1 * 8192 + k_o * 8 + 8]);
            *(float4 *)&b_c_cache_cache_next[0] = (*(__global const float4 *)&b[((i_1) % 2) * 64 + ((i_1) / 2) * 1024 + j_0 * 128 + j_1 * 4 + k_o * 8192 + 8192]);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i++) {
            #pragma unroll
            for (int c_cache_i_2 = 0; c_cache_i_2 < 8; c_cache_i_2++) {
                #pragma unroll
                for (int j_o_2 = 0; j_o_2 < 2; j_o_2++) {
                    *(float4 *)&c_cache[c_cache_i_2 * 8 + j_o_2 * 4] = ((*(float4 *)&c_cache[c_cache_i_2 * 8 + j_o_2 * 4]) + (a_c_cache_cache[((k_o) % 2) * 1024 + c_cache_i_2 * 8 + i_1 * 64 + k_i] * (*(__local float4 *)&b_c_cache_cache[((k_o) % 2) * 1024 + j_1 * 8 + j_o_2 * 4 + k_i * 128])));
                }
            }
        }
        if (k_o < 127) {
            *(__local float4 *)&a_c_cache_cache[((k_o + 1) % 2) * 1024 + i_1 * 64 + j_1 * 4] = (*(float4 *)&a_c_cache_cache_next[0]);
            *(__local float4 *)&b_c_cache_cache[((k_o + 1) % 2) * 1024 + i_1 * 64 + j_1 * 4] = (*(float4 *)&b_c_cache_cache_next[0]);
        }
    }
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2++) {
        #pragma unroll
        for (int j_2_o = 0; j_2_o < 2; j_2_o++) {
            *(__global float4 *)&c[i_0 * 131072 + i_1 * 8192 + i_2 * 1024 + j_0 * 128 + j_1 * 8 + j_2_o * 4] = (*(float4 *)&c_cache[i_2 * 8 + j_2_o * 4]);
        }
    }
}
