
__kernel __attribute__((reqd_work_group_size(2, 14, 1)))
void t_kernel(
    __global const char *x_buffer, const long x_first,  // f32 (384, 14, 14)
    __global const char *w_buffer, const long w_first,  // f32 (384, 3, 3)
    __global char *y_buffer, const long y_first,  // f32 (384, 14, 14)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global const float *restrict w = (__global const float *)(w_buffer + w_first);
    __global float *restrict y = (__global float *)(y_buffer + y_first);
    __local float pad[256] __attribute__((aligned(16)));  // (1, 16, 16)
    const int y_c = get_group_id(0);  // 0..384
    const int c_i_j_1 = get_local_id(1);  // 0..14
    const int c_i_j_2 = get_local_id(0);  // 0..2
    for (int c_i_j_0 = 0; c_i_j_0 < 10; c_i_j_0++) {
        if (c_i_j_0 * 14 + c_i_j_1 < 128) {
            pad[c_i_j_0 * 28 + c_i_j_1 * 2 + c_i_j_2] = (((((-c_i_j_0 * 14 - c_i_j_1 <= -8) && (c_i_j_0 * 14 + c_i_j_1 < 120)) && (-((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 - c_i_j_2 <= -1)) && (((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 + c_i_j_2 <= 14)) ? x[((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 + ((c_i_j_0 * 14 + c_i_j_1) / 8) * 14 + c_i_j_2 + y_c * 196 - 15] : 0.0f);
        }
    }
    float y_cache[7] __attribute__((aligned(16)));  // (1, 1, 7)
    #pragma unroll
    for (int y_cache_j = 0; y_cache_j < 7; y_cache_j++) {
        y_cache[y_cache_j] = 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    #pragma unroll
    for (int kh = 0; kh < 3; kh++) {
        #pragma unroll
        for (int kw = 0; kw < 3; kw++) {
            #pragma unroll
            for (int y_cache_j_2 = 0; y_cache_j_2 < 7; y_cache_j_2++) {
                y_cache[y_cache_j_2] = (y_cache[y_cache_j_2] + (pad[c_i_j_1 * 16 + c_i_j_2 * 7 + kh * 16 + kw + y_cache_j_2] * w[kh * 3 + kw + y_c * 9]));
            }
        }
    }
    #pragma unroll
    for (int j_i = 0; j_i < 7; j_i++) {
        y[c_i_j_1 * 14 + c_i_j_2 * 7 + j_i + y_c * 196] = y_cache[j_i];
    }
}
