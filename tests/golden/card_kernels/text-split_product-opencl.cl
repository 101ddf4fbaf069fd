
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void t_kernel(
    __global const char *a_buffer, const long a_first,  // f32 (64, 16384)
    __global const char *b_buffer, const long b_first,  // f32 (16384, 64)
    __global char *c_buffer, const long c_first,  // f32 (64, 64)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    __local float a_c_rf_cache[512] __attribute__((aligned(16)));  // (32, 16)
    __local float b_c_rf_cache[512] __attribute__((aligned(16)));  // (16, 32)
    const int c_rf_k_o = get_group_id(2);  // 0..8
    const int i_0 = get_group_id(1);  // 0..2
    const int j_0 = get_group_id(0);  // 0..2
    const int i_1 = get_local_id(1);  // 0..8
    const int j_1 = get_local_id(0);  // 0..8
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2++) {
        *(__global float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2 * 64 + j_0 * 32 + j_1 * 4] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int k_i_o = 0; k_i_o < 128; k_i_o++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int a_c_rf_cache_d0_d1_0 = 0; a_c_rf_cache_d0_d1_0 < 2; a_c_rf_cache_d0_d1_0++) {
            *(__local float4 *)&a_c_rf_cache[a_c_rf_cache_d0_d1_0 * 256 + i_1 * 32 + j_1 * 4] = (*(__global const float4 *)&a[((j_1) % 4) * 4 + ((j_1) / 4) * 16384 + a_c_rf_cache_d0_d1_0 * 262144 + c_rf_k_o * 2048 + i_0 * 524288 + i_1 * 32768 + k_i_o * 16]);
        }
        for (int b_c_rf_cache_d0_d1_0 = 0; b_c_rf_cache_d0_d1_0 < 2; b_c_rf_cache_d0_d1_0++) {
            *(__local float4 *)&b_c_rf_cache[b_c_rf_cache_d0_d1_0 * 256 + i_1 * 32 + j_1 * 4] = (*(__global const float4 *)&b[b_c_rf_cache_d0_d1_0 * 512 + c_rf_k_o * 131072 + i_1 * 64 + j_0 * 32 + j_1 * 4 + k_i_o * 1024]);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (int k_i_i = 0; k_i_i < 16; k_i_i++) {
            #pragma unroll
            for (int i_2_2 = 0; i_2_2 < 4; i_2_2++) {
                *(__global float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2_2 * 64 + j_0 * 32 + j_1 * 4] = ((*(__global float4 *)&c_rf[c_rf_k_o * 4096 + i_0 * 2048 + i_1 * 256 + i_2_2 * 64 + j_0 * 32 + j_1 * 4]) + (a_c_rf_cache[i_1 * 64 + i_2_2 * 16 + k_i_i] * (*(__local float4 *)&b_c_rf_cache[j_1 * 4 + k_i_i * 32])));
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void t_kernel_1(
    __global const char *a_buffer, const long a_first,  // f32 (64, 16384)
    __global const char *b_buffer, const long b_first,  // f32 (16384, 64)
    __global char *c_buffer, const long c_first,  // f32 (64, 64)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    const int c_i = get_group_id(1);  // 0..64
    const int j_i = get_local_id(0);  // 0..64
    c[c_i * 64 + j_i] = 0.0f;
    #pragma unroll
    for (int c_k_o = 0; c_k_o < 8; c_k_o++) {
        c[c_i * 64 + j_i] = (c[c_i * 64 + j_i] + c_rf[c_i * 64 + c_k_o * 4096 + j_i]);
    }
}
