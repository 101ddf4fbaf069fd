
__kernel __attribute__((reqd_work_group_size(2, 4, 1)))
void t_kernel(
    __global const char *a_buffer, const long a_first,  // f32 (16, 32)
    __global const char *b_buffer, const long b_first,  // f32 (32, 24)
    __global char *c_buffer, const long c_first,  // f32 (16, 24)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __local float a_c_cache_cache[96] __attribute__((aligned(16)));  // (3, 8, 4)
    __local float b_c_cache_cache[96] __attribute__((aligned(16)));  // (3, 4, 8)
    const int i_0 = get_group_id(1);  // 0..2
    const int j_0 = get_group_id(0);  // 0..3
    const int i_1 = get_local_id(1);  // 0..4
    const int j_1 = get_local_id(0);  // 0..2
    float c_cache[8] __attribute__((aligned(16)));  // (2, 4)
    #pragma unroll
    for (int c_cache_i = 0; c_cache_i < 2; c_cache_i++) {
        #pragma unroll
        for (int c_cache_j = 0; c_cache_j < 4; c_cache_j++) {
            c_cache[c_cache_i * 4 + c_cache_j] = 0.0f;
        }
    }
    *(__local float4 *)&a_c_cache_cache[i_1 * 8 + j_1 * 4] = (*(__global const float4 *)&a[i_0 * 256 + i_1 * 64 + j_1 * 32]);
    *(__local float4 *)&b_c_cache_cache[i_1 * 8 + j_1 * 4] = (*(__global const float4 *)&b[i_1 * 24 + j_0 * 8 + j_1 * 4]);
    *(__local float4 *)&a_c_cache_cache[i_1 * 8 + j_1 * 4 + 32] = (*(__global const float4 *)&a[i_0 * 256 + i_1 * 64 + j_1 * 32 + 4]);
    *(__local float4 *)&b_c_cache_cache[i_1 * 8 + j_1 * 4 + 32] = (*(__global const float4 *)&b[i_1 * 24 + j_0 * 8 + j_1 * 4 + 96]);
    for (int k_o = 0; k_o < 8; k_o++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (k_o < 6) {
            *(__local float4 *)&a_c_cache_cache[((k_o + 2) % 3) * 32 + i_1 * 8 + j_1 * 4] = (*(__global const float4 *)&a[i_0 * 256 + i_1 * 64 + j_1 * 32 + k_o * 4 + 8]);
            *(__local float4 *)&b_c_cache_cache[((k_o + 2) % 3) * 32 + i_1 * 8 + j_1 * 4] = (*(__global const float4 *)&b[i_1 * 24 + j_0 * 8 + j_1 * 4 + k_o * 96 + 192]);
        }
        for (int k_i = 0; k_i < 4; k_i++) {
            #pragma unroll
            for (int c_cache_i_2 = 0; c_cache_i_2 < 2; c_cache_i_2++) {
                #pragma unroll
                for (int c_cache_j_2 = 0; c_cache_j_2 < 4; c_cache_j_2++) {
                    c_cache[c_cache_i_2 * 4 + c_cache_j_2] = (c_cache[c_cache_i_2 * 4 + c_cache_j_2] + (a_c_cache_cache[((k_o) % 3) * 32 + c_cache_i_2 * 4 + i_1 * 8 + k_i] * b_c_cache_cache[((k_o) % 3) * 32 + c_cache_j_2 + j_1 * 4 + k_i * 8]));
                }
            }
        }
    }
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2++) {
        #pragma unroll
        for (int j_2 = 0; j_2 < 4; j_2++) {
            c[i_0 * 192 + i_1 * 48 + i_2 * 24 + j_0 * 8 + j_1 * 4 + j_2] = c_cache[i_2 * 4 + j_2];
        }
    }
}
