inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void t_kernel(
    __global const char *x_buffer, const long x_first,  // f32 (4096, 1024)
    __global char *out_buffer, const long out_first,  // f32 (4096, 1024)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict out = (__global float *)(out_buffer + out_first);
    __local float top_rf[64] __attribute__((aligned(16)));  // (1, 64)
    __local float top[1] __attribute__((aligned(16)));  // (1)
    __local float total_rf[64] __attribute__((aligned(16)));  // (1, 64)
    __local float total[1] __attribute__((aligned(16)));  // (1)
    const int out_i = get_group_id(0);  // 0..4096
    const int top_rf_j_i = get_local_id(0);  // 0..64
    top_rf[top_rf_j_i] = (-INFINITY);
    for (int top_rf_j_o = 0; top_rf_j_o < 16; top_rf_j_o++) {
        top_rf[top_rf_j_i] = max_f32(top_rf[top_rf_j_i], x[out_i * 1024 + top_rf_j_i + top_rf_j_o * 64]);
    }
    if (top_rf_j_i == 0) {
        top[0] = (-INFINITY);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (top_rf_j_i == 0) {
        for (int top_j_i = 0; top_j_i < 64; top_j_i++) {
            top[0] = max_f32(top[0], top_rf[top_j_i]);
        }
    }
    total_rf[top_rf_j_i] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int k_o = 0; k_o < 16; k_o++) {
        total_rf[top_rf_j_i] = (total_rf[top_rf_j_i] + exp((x[k_o * 64 + out_i * 1024 + top_rf_j_i] - top[0])));
    }
    if (top_rf_j_i == 0) {
        total[0] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (top_rf_j_i == 0) {
        for (int total_k_i = 0; total_k_i < 64; total_k_i++) {
            total[0] = (total[0] + total_rf[total_k_i]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int out_j_o = 0; out_j_o < 16; out_j_o++) {
        out[out_i * 1024 + out_j_o * 64 + top_rf_j_i] = (exp((x[out_i * 1024 + out_j_o * 64 + top_rf_j_i] - top[0])) / total[0]);
    }
}
