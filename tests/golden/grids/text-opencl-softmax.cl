inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


__kernel __attribute__((reqd_work_group_size(3, 1, 1)))
void softmax(
    __global const char *x_buffer, const long x_first,  // f32 (3, 21)
    __global char *softmax_buffer, const long softmax_first,  // f32 (3, 21)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict softmax_max = (__global float *)(workspace_buffer + workspace_first + 320);
    const int softmax_max_i_j_i = get_local_id(0);  // 0..3
    softmax_max[softmax_max_i_j_i] = (-INFINITY);
    float softmax_max_kept;
    softmax_max_kept = softmax_max[softmax_max_i_j_i];
    for (int softmax_max_rj = 0; softmax_max_rj < 21; softmax_max_rj++) {
        softmax_max_kept = max_f32(softmax_max_kept, x[softmax_max_i_j_i * 21 + softmax_max_rj]);
    }
    softmax_max[softmax_max_i_j_i] = softmax_max_kept;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void softmax_1(
    __global const char *x_buffer, const long x_first,  // f32 (3, 21)
    __global char *softmax_buffer, const long softmax_first,  // f32 (3, 21)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict softmax_exp = (__global float *)(workspace_buffer + workspace_first + 64);
    __global float *restrict softmax_max = (__global float *)(workspace_buffer + workspace_first + 320);
    const int softmax_exp_i_j_o = get_group_id(0);  // 0..2
    const int softmax_exp_i_j_i = get_local_id(0);  // 0..32
    if (softmax_exp_i_j_i + softmax_exp_i_j_o * 32 < 63) {
        softmax_exp[softmax_exp_i_j_i + softmax_exp_i_j_o * 32] = exp((x[softmax_exp_i_j_i + softmax_exp_i_j_o * 32] - softmax_max[((softmax_exp_i_j_i + softmax_exp_i_j_o * 32) / 21)]));
    }
}

__kernel __attribute__((reqd_work_group_size(3, 1, 1)))
void softmax_2(
    __global const char *x_buffer, const long x_first,  // f32 (3, 21)
    __global char *softmax_buffer, const long softmax_first,  // f32 (3, 21)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict softmax_sum = (__global float *)(workspace_buffer + workspace_first + 0);
    __global float *restrict softmax_exp = (__global float *)(workspace_buffer + workspace_first + 64);
    const int softmax_sum_i_j_i = get_local_id(0);  // 0..3
    softmax_sum[softmax_sum_i_j_i] = 0.0f;
    float softmax_sum_kept;
    softmax_sum_kept = softmax_sum[softmax_sum_i_j_i];
    for (int softmax_sum_rj = 0; softmax_sum_rj < 21; softmax_sum_rj++) {
        softmax_sum_kept = (softmax_sum_kept + softmax_exp[softmax_sum_i_j_i * 21 + softmax_sum_rj]);
    }
    softmax_sum[softmax_sum_i_j_i] = softmax_sum_kept;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void softmax_3(
    __global const char *x_buffer, const long x_first,  // f32 (3, 21)
    __global char *softmax_buffer, const long softmax_first,  // f32 (3, 21)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict softmax = (__global float *)(softmax_buffer + softmax_first);
    __global float *restrict softmax_sum = (__global float *)(workspace_buffer + workspace_first + 0);
    __global float *restrict softmax_exp = (__global float *)(workspace_buffer + workspace_first + 64);
    const int softmax_i_j_o = get_group_id(0);  // 0..2
    const int softmax_i_j_i = get_local_id(0);  // 0..32
    if (softmax_i_j_i + softmax_i_j_o * 32 < 63) {
        softmax[softmax_i_j_i + softmax_i_j_o * 32] = (softmax_exp[softmax_i_j_i + softmax_i_j_o * 32] * (1.0f / softmax_sum[((softmax_i_j_i + softmax_i_j_o * 32) / 21)]));
    }
}
