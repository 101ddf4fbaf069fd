inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void softmax(
    __global const char *x_buffer, const long x_first,  // f32 (3, 21)
    __global char *softmax_buffer, const long softmax_first,  // f32 (3, 21)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict softmax = (__global float *)(softmax_buffer + softmax_first);
    __local float softmax_max_rf_rf[16] __attribute__((aligned(16)));  // (1, 1, 1, 16)
    __local float softmax_max_rf[1] __attribute__((aligned(16)));  // (1, 1, 1)
    __local float softmax_max[1] __attribute__((aligned(16)));  // (1, 1)
    __local float softmax_exp[21] __attribute__((aligned(16)));  // (1, 21)
    __local float softmax_sum_rf_rf[16] __attribute__((aligned(16)));  // (1, 1, 1, 16)
    __local float softmax_sum_rf[1] __attribute__((aligned(16)));  // (1, 1, 1)
    __local float softmax_sum[1] __attribute__((aligned(16)));  // (1, 1)
    const int i_o = get_group_id(0);  // 0..3
    const int softmax_max_rf_rf_rj_2 = get_local_id(0);  // 0..16
    softmax_max_rf_rf[softmax_max_rf_rf_rj_2] = (-INFINITY);
    float softmax_max_rf_rf_kept;
    softmax_max_rf_rf_kept = softmax_max_rf_rf[softmax_max_rf_rf_rj_2];
    for (int softmax_max_rf_rf_rj_0 = 0; softmax_max_rf_rf_rj_0 < 2; softmax_max_rf_rf_rj_0++) {
        softmax_max_rf_rf_kept = max_f32(softmax_max_rf_rf_kept, ((softmax_max_rf_rf_rj_0 * 16 + softmax_max_rf_rf_rj_2 < 21) ? x[i_o * 21 + softmax_max_rf_rf_rj_0 * 16 + softmax_max_rf_rf_rj_2] : (-INFINITY)));
    }
    softmax_max_rf_rf[softmax_max_rf_rf_rj_2] = softmax_max_rf_rf_kept;
    if (softmax_max_rf_rf_rj_2 == 0) {
        softmax_max_rf[0] = (-INFINITY);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (softmax_max_rf_rf_rj_2 == 0) {
        float softmax_max_rf_kept;
        softmax_max_rf_kept = softmax_max_rf[0];
        for (int softmax_max_rf_rj_2 = 0; softmax_max_rf_rj_2 < 16; softmax_max_rf_rj_2++) {
            softmax_max_rf_kept = max_f32(softmax_max_rf_kept, softmax_max_rf_rf[softmax_max_rf_rj_2]);
        }
        softmax_max_rf[0] = softmax_max_rf_kept;
        softmax_max[0] = (-INFINITY);
        softmax_max[0] = max_f32(softmax_max[0], softmax_max_rf[0]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int softmax_exp_j_0 = 0; softmax_exp_j_0 < 2; softmax_exp_j_0++) {
        if (softmax_exp_j_0 * 16 + softmax_max_rf_rf_rj_2 < 21) {
            softmax_exp[softmax_exp_j_0 * 16 + softmax_max_rf_rf_rj_2] = exp((x[i_o * 21 + softmax_exp_j_0 * 16 + softmax_max_rf_rf_rj_2] - softmax_max[0]));
        }
    }
    softmax_sum_rf_rf[softmax_max_rf_rf_rj_2] = 0.0f;
    float softmax_sum_rf_rf_kept;
    softmax_sum_rf_rf_kept = softmax_sum_rf_rf[softmax_max_rf_rf_rj_2];
    for (int softmax_sum_rf_rf_rj_0 = 0; softmax_sum_rf_rf_rj_0 < 2; softmax_sum_rf_rf_rj_0++) {
        softmax_sum_rf_rf_kept = (softmax_sum_rf_rf_kept + ((softmax_max_rf_rf_rj_2 + softmax_sum_rf_rf_rj_0 * 16 < 21) ? softmax_exp[softmax_max_rf_rf_rj_2 + softmax_sum_rf_rf_rj_0 * 16] : 0.0f));
    }
    softmax_sum_rf_rf[softmax_max_rf_rf_rj_2] = softmax_sum_rf_rf_kept;
    if (softmax_max_rf_rf_rj_2 == 0) {
        softmax_sum_rf[0] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (softmax_max_rf_rf_rj_2 == 0) {
        float softmax_sum_rf_kept;
        softmax_sum_rf_kept = softmax_sum_rf[0];
        for (int softmax_sum_rf_rj_2 = 0; softmax_sum_rf_rj_2 < 16; softmax_sum_rf_rj_2++) {
            softmax_sum_rf_kept = (softmax_sum_rf_kept + softmax_sum_rf_rf[softmax_sum_rf_rj_2]);
        }
        softmax_sum_rf[0] = softmax_sum_rf_kept;
        softmax_sum[0] = 0.0f;
        softmax_sum[0] = (softmax_sum[0] + softmax_sum_rf[0]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int softmax_j_0 = 0; softmax_j_0 < 2; softmax_j_0++) {
        if (softmax_j_0 * 16 + softmax_max_rf_rf_rj_2 < 21) {
            softmax[i_o * 21 + softmax_j_0 * 16 + softmax_max_rf_rf_rj_2] = (softmax_exp[softmax_j_0 * 16 + softmax_max_rf_rf_rj_2] * (1.0f / softmax_sum[0]));
        }
    }
}
