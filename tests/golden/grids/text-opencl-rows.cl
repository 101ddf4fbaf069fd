inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


__kernel __attribute__((reqd_work_group_size(32, 4, 1)))
void rows(
    __global const char *x_buffer, const long x_first,  // f32 (64, 1000)
    __global char *out_buffer, const long out_first,  // f32 (64, 1000)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict out = (__global float *)(out_buffer + out_first);
    __local float top_rf_rf[128] __attribute__((aligned(16)));  // (1, 4, 32)
    __local float top_rf[4] __attribute__((aligned(16)));  // (1, 4)
    __local float top[1] __attribute__((aligned(16)));  // (1)
    __local float e[1000] __attribute__((aligned(16)));  // (1, 1000)
    __local float total_rf_rf[128] __attribute__((aligned(16)));  // (1, 4, 32)
    __local float total_rf[4] __attribute__((aligned(16)));  // (1, 4)
    __local float total[1] __attribute__((aligned(16)));  // (1)
    const int i_o = get_group_id(0);  // 0..64
    const int top_rf_rf_j_1 = get_local_id(1);  // 0..4
    const int top_rf_rf_j_2 = get_local_id(0);  // 0..32
    top_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = (-INFINITY);
    float top_rf_rf_kept;
    top_rf_rf_kept = top_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2];
    for (int top_rf_rf_j_0 = 0; top_rf_rf_j_0 < 8; top_rf_rf_j_0++) {
        top_rf_rf_kept = max_f32(top_rf_rf_kept, ((top_rf_rf_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2 < 1000) ? x[i_o * 1000 + top_rf_rf_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] : (-INFINITY)));
    }
    top_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = top_rf_rf_kept;
    if (top_rf_rf_j_2 == 0) {
        top_rf[top_rf_rf_j_1] = (-INFINITY);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (top_rf_rf_j_2 == 0) {
        float top_rf_kept;
        top_rf_kept = top_rf[top_rf_rf_j_1];
        for (int top_rf_j_2 = 0; top_rf_j_2 < 32; top_rf_j_2++) {
            top_rf_kept = max_f32(top_rf_kept, top_rf_rf[top_rf_j_2 + top_rf_rf_j_1 * 32]);
        }
        top_rf[top_rf_rf_j_1] = top_rf_kept;
    }
    if ((top_rf_rf_j_1 == 0) && (top_rf_rf_j_2 == 0)) {
        top[0] = (-INFINITY);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if ((top_rf_rf_j_1 == 0) && (top_rf_rf_j_2 == 0)) {
        float top_kept;
        top_kept = top[0];
        for (int top_j_1 = 0; top_j_1 < 4; top_j_1++) {
            top_kept = max_f32(top_kept, top_rf[top_j_1]);
        }
        top[0] = top_kept;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int e_j_0 = 0; e_j_0 < 8; e_j_0++) {
        if (e_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2 < 1000) {
            e[e_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = exp((x[e_j_0 * 128 + i_o * 1000 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] - top[0]));
        }
    }
    total_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = 0.0f;
    float total_rf_rf_kept;
    total_rf_rf_kept = total_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2];
    for (int k_0 = 0; k_0 < 8; k_0++) {
        total_rf_rf_kept = (total_rf_rf_kept + ((k_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2 < 1000) ? e[k_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] : 0.0f));
    }
    total_rf_rf[top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = total_rf_rf_kept;
    if (top_rf_rf_j_2 == 0) {
        total_rf[top_rf_rf_j_1] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (top_rf_rf_j_2 == 0) {
        float total_rf_kept;
        total_rf_kept = total_rf[top_rf_rf_j_1];
        for (int total_rf_k_2 = 0; total_rf_k_2 < 32; total_rf_k_2++) {
            total_rf_kept = (total_rf_kept + total_rf_rf[top_rf_rf_j_1 * 32 + total_rf_k_2]);
        }
        total_rf[top_rf_rf_j_1] = total_rf_kept;
    }
    if ((top_rf_rf_j_1 == 0) && (top_rf_rf_j_2 == 0)) {
        total[0] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if ((top_rf_rf_j_1 == 0) && (top_rf_rf_j_2 == 0)) {
        float total_kept;
        total_kept = total[0];
        for (int total_k_1 = 0; total_k_1 < 4; total_k_1++) {
            total_kept = (total_kept + total_rf[total_k_1]);
        }
        total[0] = total_kept;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int out_j_0 = 0; out_j_0 < 8; out_j_0++) {
        if (out_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2 < 1000) {
            out[i_o * 1000 + out_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] = (e[out_j_0 * 128 + top_rf_rf_j_1 * 32 + top_rf_rf_j_2] / total[0]);
        }
    }
}
