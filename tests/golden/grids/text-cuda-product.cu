
extern "C" __global__ void __launch_bounds__(8) product(
    const float *__restrict__ x,  // f32 (6, 10)
    const float *__restrict__ matmul_right,  // f32 (10, 16)
    float *__restrict__ matmul,  // f32 (6, 16)
    char *__restrict__ workspace) {
    __shared__ float matmul_left[60] __align__(16);  // (10, 2)
    __shared__ float matmul_right_matmul_product_cache[40] __align__(16);  // (10, 4)
    const int i_0_j_0 = blockIdx.x;  // 0..12
    const int i_2_j_2 = threadIdx.x;  // 0..8
    float matmul_product;
    matmul_product = 0.0f;
    for (int i_k_o = 0; i_k_o < 3; i_k_o++) {
        __syncthreads();
        if (i_2_j_2 + i_k_o * 8 < 20) {
            matmul_left[((i_2_j_2 + i_k_o * 8) % 10) * 6 + ((i_2_j_2 + i_k_o * 8) / 10)] = x[((i_0_j_0) / 4) * 20 + i_2_j_2 + i_k_o * 8];
        }
    }
    for (int d0_d1_0 = 0; d0_d1_0 < 2; d0_d1_0++) {
        if (d0_d1_0 * 8 + i_2_j_2 < 10) {
            *(float4 *)&matmul_right_matmul_product_cache[d0_d1_0 * 32 + i_2_j_2 * 4] = (*(const float4 *)&matmul_right[((i_0_j_0) % 4) * 4 + d0_d1_0 * 128 + i_2_j_2 * 16]);
        }
    }
    __syncthreads();
    for (int k_1 = 0; k_1 < 2; k_1++) {
        #pragma unroll
        for (int k_2 = 0; k_2 < 5; k_2++) {
            matmul_product = (matmul_product + (matmul_left[((i_2_j_2) / 4) + k_1 * 30 + k_2 * 6] * matmul_right_matmul_product_cache[((i_2_j_2) % 4) + k_1 * 20 + k_2 * 4]));
        }
    }
    matmul[((i_0_j_0) % 4) * 4 + ((i_0_j_0) / 4) * 32 + ((i_2_j_2) % 4) + ((i_2_j_2) / 4) * 16] = matmul_product;
}
