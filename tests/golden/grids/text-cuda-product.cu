
extern "C" __global__ void __launch_bounds__(32) product(
    const float *__restrict__ x,  // f32 (6, 10)
    const float *__restrict__ w,  // f32 (10, 16)
    float *__restrict__ matmul,  // f32 (6, 16)
    char *__restrict__ workspace) {
    const int i_j_o = blockIdx.x;  // 0..3
    const int i_j_i = threadIdx.x;  // 0..32
    matmul[i_j_i + i_j_o * 32] = 0.0f;
    float matmul_kept;
    matmul_kept = matmul[i_j_i + i_j_o * 32];
    for (int k = 0; k < 10; k++) {
        matmul_kept = (matmul_kept + (x[((i_j_i) / 16) * 10 + i_j_o * 20 + k] * w[((i_j_i) % 16) + k * 16]));
    }
    matmul[i_j_i + i_j_o * 32] = matmul_kept;
}
