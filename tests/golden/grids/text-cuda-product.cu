
extern "C" __global__ void __launch_bounds__(32) product(
    const float *__restrict__ x,  // f32 (6, 10)
    const float *__restrict__ matmul_right,  // f32 (10, 16)
    float *__restrict__ matmul,  // f32 (6, 16)
    char *__restrict__ workspace) {
    __shared__ float matmul_left[80] __align__(16);  // (10, 4)
    __shared__ float matmul_right_matmul_product_cache[80] __align__(16);  // (10, 8)
    const int i_0_j_0 = blockIdx.x;  // 0..4
    const int i_2_j_2 = threadIdx.x;  // 0..32
    float matmul_product;
    matmul_product = 0.0f;
    for (int i_k_o = 0; i_k_o < 2; i_k_o++) {
        __syncthreads();
        if (i_2_j_2 + i_k_o * 32 < 40) {
            matmul_left[((i_2_j_2 + i_k_o * 32) % 10) * 8 + ((i_2_j_2 + i_k_o * 32) / 10)] = x[((((i_0_j_0) / 2) * 4 + ((i_2_j_2 + i_k_o * 32) / 10) < 5 ? ((i_0_j_0) / 2) * 4 + ((i_2_j_2 + i_k_o * 32) / 10) : 5)) * 10 + ((i_2_j_2 + i_k_o * 32) % 10)];
        }
    }
    if (i_2_j_2 < 20) {
        *(float4 *)&matmul_right_matmul_product_cache[i_2_j_2 * 4] = (*(const float4 *)&matmul_right[((i_0_j_0) % 2) * 8 + ((i_2_j_2) % 2) * 4 + ((i_2_j_2) / 2) * 16]);
    }
    __syncthreads();
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
