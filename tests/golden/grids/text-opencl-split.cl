
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void split(
    __global const char *a_buffer, const long a_first,  // f32 (16, 1024)
    __global const char *b_buffer, const long b_first,  // f32 (1024, 32)
    __global char *c_buffer, const long c_first,  // f32 (16, 32)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    __local float a_c_rf_cache_cache[256] __attribute__((aligned(16)));  // (16, 16)
    __local float b_c_rf_cache_cache[512] __attribute__((aligned(16)));  // (16, 32)
    const int k_o_0_i_0_j_0 = get_group_id(0);  // 0..8
    const int k_o_1_i_1_j_1 = get_local_id(0);  // 0..256
    float c_rf_cache[2] __attribute__((aligned(16)));  // (1, 1, 2)
    #pragma unroll
    for (int c_rf_cache_j = 0; c_rf_cache_j < 2; c_rf_cache_j++) {
        c_rf_cache[c_rf_cache_j] = 0.0f;
    }
    for (int k_i_o = 0; k_i_o < 8; k_i_o++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        a_c_rf_cache_cache[k_o_1_i_1_j_1] = a[((k_o_1_i_1_j_1) % 16) + ((k_o_1_i_1_j_1) / 16) * 1024 + k_i_o * 16 + k_o_0_i_0_j_0 * 128];
        if (k_o_1_i_1_j_1 < 128) {
            *(__local float4 *)&b_c_rf_cache_cache[k_o_1_i_1_j_1 * 4] = (*(__global const float4 *)&b[k_i_o * 512 + k_o_0_i_0_j_0 * 4096 + k_o_1_i_1_j_1 * 4]);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int k_i_i = 0; k_i_i < 16; k_i_i++) {
            #pragma unroll
            for (int c_rf_cache_j_2 = 0; c_rf_cache_j_2 < 2; c_rf_cache_j_2++) {
                c_rf_cache[c_rf_cache_j_2] = (c_rf_cache[c_rf_cache_j_2] + (a_c_rf_cache_cache[((k_o_1_i_1_j_1) / 16) * 16 + k_i_i] * b_c_rf_cache_cache[((k_o_1_i_1_j_1) % 16) * 2 + c_rf_cache_j_2 + k_i_i * 32]));
            }
        }
    }
    #pragma unroll
    for (int j_2 = 0; j_2 < 2; j_2++) {
        c_rf[j_2 + k_o_0_i_0_j_0 * 512 + k_o_1_i_1_j_1 * 2] = c_rf_cache[j_2];
    }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void split_1(
    __global const char *a_buffer, const long a_first,  // f32 (16, 1024)
    __global const char *b_buffer, const long b_first,  // f32 (1024, 32)
    __global char *c_buffer, const long c_first,  // f32 (16, 32)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    const int i_j_0 = get_group_id(0);  // 0..16
    const int i_j_2 = get_local_id(0);  // 0..32
    c[i_j_0 * 32 + i_j_2] = 0.0f;
    float c_kept;
    c_kept = c[i_j_0 * 32 + i_j_2];
    for (int c_k_o = 0; c_k_o < 8; c_k_o++) {
        c_kept = (c_kept + c_rf[c_k_o * 512 + i_j_0 * 32 + i_j_2]);
    }
    c[i_j_0 * 32 + i_j_2] = c_kept;
}
