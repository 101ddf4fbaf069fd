
extern "C" __global__ void __launch_bounds__(48) product(
    const float *__restrict__ x,  // f32 (6, 10)
    const float *__restrict__ w,  // f32 (10, 16)
    float *__restrict__ matmul,  // f32 (6, 16)
    char *__restrict__ workspace) {
    __shared__ float x_matmul_cache_cache[60] __align__(16);  // (6, 10)
    __shared__ float w_matmul_cache_cache[80] __align__(16);  // (10, 8)
    const int i_0_j_0 = blockIdx.x;  // 0..2
    const int i_1_j_1 = threadIdx.x;  // 0..48
    float matmul_cache;
    matmul_cache = 0.0f;
    if (i_1_j_1 < 30) {
        *(float2 *)&x_matmul_cache_cache[i_1_j_1 * 2] = (*(const float2 *)&x[i_1_j_1 * 2]);
    }
    if (i_1_j_1 < 20) {
        *(float4 *)&w_matmul_cache_cache[i_1_j_1 * 4] = (*(const float4 *)&w[((i_1_j_1) % 2) * 4 + ((i_1_j_1) / 2) * 16 + i_0_j_0 * 8]);
    }
    __syncthreads();
    for (int k_i = 0; k_i < 10; k_i++) {
        matmul_cache = (matmul_cache + (x_matmul_cache_cache[((i_1_j_1) / 8) * 10 + k_i] * w_matmul_cache_cache[((i_1_j_1) % 8) + k_i * 8]));
    }
    matmul[((i_1_j_1) % 8) + ((i_1_j_1) / 8) * 16 + i_0_j_0 * 8] = matmul_cache;
}
