
__kernel __attribute__((reqd_work_group_size(48, 1, 1)))
void product(
    __global const char *x_buffer, const long x_first,  // f32 (6, 10)
    __global const char *w_buffer, const long w_first,  // f32 (10, 16)
    __global char *matmul_buffer, const long matmul_first,  // f32 (6, 16)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global const float *restrict w = (__global const float *)(w_buffer + w_first);
    __global float *restrict matmul = (__global float *)(matmul_buffer + matmul_first);
    __local float x_matmul_cache_cache[60] __attribute__((aligned(16)));  // (6, 10)
    __local float w_matmul_cache_cache[80] __attribute__((aligned(16)));  // (10, 8)
    const int i_0_j_0 = get_group_id(0);  // 0..2
    const int i_1_j_1 = get_local_id(0);  // 0..48
    float matmul_cache;
    matmul_cache = 0.0f;
    if (i_1_j_1 < 30) {
        *(__local float2 *)&x_matmul_cache_cache[i_1_j_1 * 2] = (*(__global const float2 *)&x[i_1_j_1 * 2]);
    }
    if (i_1_j_1 < 20) {
        *(__local float4 *)&w_matmul_cache_cache[i_1_j_1 * 4] = (*(__global const float4 *)&w[((i_1_j_1) % 2) * 4 + ((i_1_j_1) / 2) * 16 + i_0_j_0 * 8]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int k_i = 0; k_i < 10; k_i++) {
        matmul_cache = (matmul_cache + (x_matmul_cache_cache[((i_1_j_1) / 8) * 10 + k_i] * w_matmul_cache_cache[((i_1_j_1) % 8) + k_i * 8]));
    }
    matmul[((i_1_j_1) % 8) + ((i_1_j_1) / 8) * 16 + i_0_j_0 * 8] = matmul_cache;
}
