
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void product(
    __global const char *x_buffer, const long x_first,  // f32 (6, 10)
    __global const char *w_buffer, const long w_first,  // f32 (10, 16)
    __global char *matmul_buffer, const long matmul_first,  // f32 (6, 16)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global const float *restrict w = (__global const float *)(w_buffer + w_first);
    __global float *restrict matmul = (__global float *)(matmul_buffer + matmul_first);
    const int i_j_o = get_group_id(0);  // 0..3
    const int i_j_i = get_local_id(0);  // 0..32
    matmul[i_j_i + i_j_o * 32] = 0.0f;
    float matmul_kept;
    matmul_kept = matmul[i_j_i + i_j_o * 32];
    for (int k = 0; k < 10; k++) {
        matmul_kept = (matmul_kept + (x[((i_j_i) / 16) * 10 + i_j_o * 20 + k] * w[((i_j_i) % 16) + k * 16]));
    }
    matmul[i_j_i + i_j_o * 32] = matmul_kept;
}
