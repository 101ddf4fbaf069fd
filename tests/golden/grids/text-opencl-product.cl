
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void product(
    __global const char *x_buffer, const long x_first,  // f32 (6, 10)
    __global const char *matmul_right_buffer, const long matmul_right_first,  // f32 (10, 16)
    __global char *matmul_buffer, const long matmul_first,  // f32 (6, 16)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global const float *restrict matmul_right = (__global const float *)(matmul_right_buffer + matmul_right_first);
    __global float *restrict matmul = (__global float *)(matmul_buffer + matmul_first);
    __local float matmul_left[80] __attribute__((aligned(16)));  // (10, 4)
    __local float matmul_right_matmul_product_cache[80] __attribute__((aligned(16)));  // (10, 8)
    const int i_0_j_0 = get_group_id(0);  // 0..4
    const int i_2_j_2 = get_local_id(0);  // 0..32
    float matmul_product;
    matmul_product = 0.0f;
    for (int i_k_o = 0; i_k_o < 2; i_k_o++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (i_2_j_2 + i_k_o * 32 < 40) {
            matmul_left[((i_2_j_2 + i_k_o * 32) % 10) * 8 + ((i_2_j_2 + i_k_o * 32) / 10)] = x[((((i_0_j_0) / 2) * 4 + ((i_2_j_2 + i_k_o * 32) / 10) < 5 ? ((i_0_j_0) / 2) * 4 + ((i_2_j_2 + i_k_o * 32) / 10) : 5)) * 10 + ((i_2_j_2 + i_k_o * 32) % 10)];
        }
    }
    if (i_2_j_2 < 20) {
        *(__local float4 *)&matmul_right_matmul_product_cache[i_2_j_2 * 4] = (*(__global const float4 *)&matmul_right[((i_0_j_0) % 2) * 8 + ((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 16]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int k_1 = 0; k_1 < 2; k_1++) {
        #pragma unroll
        for (int k_2 = 0; k_2 < 5; k_2++) {
            matmul_product = (matmul_product + (matmul_left[((i_2_j_2) / 8) + k_1 * 40 + k_2 * 8] * matmul_right_matmul_product_cache[((i_2_j_2) % 8) + k_1 * 40 + k_2 * 8]));
        }
    }
    if (((i_0_j_0) / 2) * 4 + ((i_2_j_2) / 8) < 6) {
        matmul[((i_0_j_0) % 2) * 8 + ((i_0_j_0) / 2) * 64 + ((i_2_j_2) % 8) + ((i_2_j_2) / 8) * 16] = matmul_product;
    }
}
