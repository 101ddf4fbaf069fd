
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void t_kernel(
    __global const char *x_buffer, const long x_first,  // f32 (512, 7, 7)
    __global const char *w_buffer, const long w_first,  // f32 (512, 512, 3, 3)
    __global char *y_buffer, const long y_first,  // f32 (512, 7, 7)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict x = (__global const float *)(x_buffer + x_first);
    __global float *restrict y_columns = (__global float *)(workspace_buffer + workspace_first + 17301504);
    const int d0_i_t_j_t_o = get_group_id(0);  // 0..128
    const int d0_i_t_j_t_i = get_local_id(0);  // 0..64
    float y_rows[16] __attribute__((aligned(16)));  // (4, 1, 1, 4)
    #pragma unroll
    for (int y_rows_j_1 = 0; y_rows_j_1 < 4; y_rows_j_1++) {
        y_rows[y_rows_j_1] = (((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j_1 < 9) ? ((((((((d0_i_t_j_t_i) / 4)) % 4) < 3) && (-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j_1 <= -1)) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j_1 <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j_1 + 6] : 0.0f) : 0.0f) - ((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j_1 < 9) ? ((((-((((d0_i_t_j_t_i) / 4)) % 4) <= -1) && (-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j_1 <= -1)) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j_1 <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j_1 - 8] : 0.0f) : 0.0f));
    }
    #pragma unroll
    for (int y_rows_u = 0; y_rows_u < 3; y_rows_u++) {
        #pragma unroll
        for (int y_rows_j = 0; y_rows_j < 4; y_rows_j++) {
            y_rows[y_rows_j + y_rows_u * 4 + 4] = ((y_rows_u == 0) ? (((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9) ? ((((((((d0_i_t_j_t_i) / 4)) % 4) < 3) && (-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1)) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j + 6] : 0.0f) : 0.0f) + ((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9) ? (((-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j - 1] : 0.0f) : 0.0f)) : ((y_rows_u == 1) ? (((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9) ? ((((((((d0_i_t_j_t_i) / 4)) % 4) < 3) && (-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1)) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j + 6] : 0.0f) : 0.0f) - ((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9) ? (((-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j - 1] : 0.0f) : 0.0f)) : ((((((((d0_i_t_j_t_i) / 4)) % 4) < 3) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9)) ? ((((((((d0_i_t_j_t_i) / 4)) % 4) < 3) && (-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1)) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j + 13] : 0.0f) : 0.0f) - ((((d0_i_t_j_t_i) % 4) * 2 + y_rows_j < 9) ? (((-((d0_i_t_j_t_i) % 4) * 2 - y_rows_j <= -1) && (((d0_i_t_j_t_i) % 4) * 2 + y_rows_j <= 7)) ? x[((((d0_i_t_j_t_i) / 4)) % 4) * 14 + ((d0_i_t_j_t_i) % 4) * 2 + ((d0_i_t_j_t_i) / 16) * 49 + d0_i_t_j_t_o * 196 + y_rows_j - 1] : 0.0f) : 0.0f))));
        }
    }
    #pragma unroll
    for (int y_columns_u = 0; y_columns_u < 4; y_columns_u++) {
        y_columns[d0_i_t_j_t_i + d0_i_t_j_t_o * 64 + y_columns_u * 32768] = (y_rows[y_columns_u * 4 + 2] - y_rows[y_columns_u * 4]);
        #pragma unroll
        for (int y_columns_v = 0; y_columns_v < 3; y_columns_v++) {
            y_columns[d0_i_t_j_t_i + d0_i_t_j_t_o * 64 + y_columns_u * 32768 + y_columns_v * 8192 + 8192] = ((y_columns_v == 0) ? (y_rows[y_columns_u * 4 + 2] + y_rows[y_columns_u * 4 + 1]) : ((y_columns_v == 1) ? (y_rows[y_columns_u * 4 + 2] - y_rows[y_columns_u * 4 + 1]) : (y_rows[y_columns_u * 4 + 3] - y_rows[y_columns_u * 4 + 1])));
        }
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void t_kernel_1(
    __global const char *x_buffer, const long x_first,  // f32 (512, 7, 7)
    __global const char *w_buffer, const long w_first,  // f32 (512, 512, 3, 3)
    __global char *y_buffer, const long y_first,  // f32 (512, 7, 7)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict w = (__global const float *)(w_buffer + w_first);
    __global float *restrict y_kernel = (__global float *)(workspace_buffer + workspace_first + 524288);
    const int d0_d1_o = get_group_id(0);  // 0..4096
    const int d0_d1_i = get_local_id(0);  // 0..64
    double y_kernel_f64_2;
    y_kernel_f64_2 = 0.0;
    for (int kh_2 = 0; kh_2 < 3; kh_2++) {
        for (int kw_2 = 0; kw_2 < 3; kw_2++) {
            y_kernel_f64_2 = (y_kernel_f64_2 + (((double)(w[d0_d1_i * 9 + d0_d1_o * 576 + kh_2 * 3 + kw_2]) * ((kh_2 == 0) ? (-1.0) : 0.0)) * ((kw_2 == 0) ? (-1.0) : 0.0)));
        }
    }
    y_kernel[d0_d1_i + d0_d1_o * 64] = (float)y_kernel_f64_2;
    for (int y_kernel_v_1 = 0; y_kernel_v_1 < 3; y_kernel_v_1++) {
        double y_kernel_f64_1;
        y_kernel_f64_1 = 0.0;
        for (int kh_1 = 0; kh_1 < 3; kh_1++) {
            for (int kw_1 = 0; kw_1 < 3; kw_1++) {
                y_kernel_f64_1 = (y_kernel_f64_1 + (((double)(w[d0_d1_i * 9 + d0_d1_o * 576 + kh_1 * 3 + kw_1]) * ((kh_1 == 0) ? (-1.0) : 0.0)) * ((y_kernel_v_1 == 0) ? 0.5 : ((y_kernel_v_1 == 1) ? ((kw_1 == 0) ? 0.5 : ((kw_1 == 1) ? (-0.5) : 0.5)) : ((kw_1 == 0) ? 0.0 : ((kw_1 == 1) ? 0.0 : 1.0))))));
            }
        }
        y_kernel[d0_d1_i + d0_d1_o * 64 + y_kernel_v_1 * 262144 + 262144] = (float)y_kernel_f64_1;
    }
    for (int y_kernel_u = 0; y_kernel_u < 3; y_kernel_u++) {
        double y_kernel_f64_3;
        y_kernel_f64_3 = 0.0;
        for (int kh_3 = 0; kh_3 < 3; kh_3++) {
            for (int kw_3 = 0; kw_3 < 3; kw_3++) {
                y_kernel_f64_3 = (y_kernel_f64_3 + (((double)(w[d0_d1_i * 9 + d0_d1_o * 576 + kh_3 * 3 + kw_3]) * ((y_kernel_u == 0) ? 0.5 : ((y_kernel_u == 1) ? ((kh_3 == 0) ? 0.5 : ((kh_3 == 1) ? (-0.5) : 0.5)) : ((kh_3 == 0) ? 0.0 : ((kh_3 == 1) ? 0.0 : 1.0))))) * ((kw_3 == 0) ? (-1.0) : 0.0)));
            }
        }
        y_kernel[d0_d1_i + d0_d1_o * 64 + y_kernel_u * 1048576 + 1048576] = (float)y_kernel_f64_3;
        for (int y_kernel_v = 0; y_kernel_v < 3; y_kernel_v++) {
            double y_kernel_f64;
            y_kernel_f64 = 0.0;
            for (int kh = 0; kh < 3; kh++) {
                for (int kw = 0; kw < 3; kw++) {
                    y_kernel_f64 = (y_kernel_f64 + (((double)(w[d0_d1_i * 9 + d0_d1_o * 576 + kh * 3 + kw]) * ((y_kernel_u == 0) ? 0.5 : ((y_kernel_u == 1) ? ((kh == 0) ? 0.5 : ((kh == 1) ? (-0.5) : 0.5)) : ((kh == 0) ? 0.0 : ((kh == 1) ? 0.0 : 1.0))))) * ((y_kernel_v == 0) ? 0.5 : ((y_kernel_v == 1) ? ((kw == 0) ? 0.5 : ((kw == 1) ? (-0.5) : 0.5)) : ((kw == 0) ? 0.0 : ((kw == 1) ? 0.0 : 1.0))))));
                }
            }
            y_kernel[d0_d1_i + d0_d1_o * 64 + y_kernel_u * 1048576 + y_kernel_v * 262144 + 1310720] = (float)y_kernel_f64;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(4, 16, 1)))
void t_kernel_2(
    __global const char *x_buffer, const long x_first,  // f32 (512, 7, 7)
    __global const char *w_buffer, const long w_first,  // f32 (512, 512, 3, 3)
    __global char *y_buffer, const long y_first,  // f32 (512, 7, 7)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict y_product = (__global float *)(workspace_buffer + workspace_first + 0);
    __global float *restrict y_kernel = (__global float *)(workspace_buffer + workspace_first + 524288);
    __global float *restrict y_columns = (__global float *)(workspace_buffer + workspace_first + 17301504);
    __local float y_columns_y_product_cache_cache[128] __attribute__((aligned(16)));  // (1, 1, 8, 4, 4)
    __local float y_kernel_y_product_cache_cache[512] __attribute__((aligned(16)));  // (1, 1, 64, 8)
    const int u_v = get_group_id(1);  // 0..16
    const int f_0 = get_group_id(0);  // 0..8
    const int f_1 = get_local_id(1);  // 0..16
    const int y_product_i_t = get_local_id(0);  // 0..4
    float y_product_cache[16] __attribute__((aligned(16)));  // (1, 1, 4, 1, 4)
    #pragma unroll
    for (int y_product_cache_f = 0; y_product_cache_f < 4; y_product_cache_f++) {
        *(float4 *)&y_product_cache[y_product_cache_f * 4] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int ic_o = 0; ic_o < 64; ic_o++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (f_1 < 8) {
            *(__local float4 *)&y_columns_y_product_cache_cache[f_1 * 16 + y_product_i_t * 4] = (*(__global float4 *)&y_columns[f_1 * 16 + ic_o * 128 + u_v * 8192 + y_product_i_t * 4]);
        }
        for (int d0_d1_d2_d3_0 = 0; d0_d1_d2_d3_0 < 2; d0_d1_d2_d3_0++) {
            *(__local float4 *)&y_kernel_y_product_cache_cache[d0_d1_d2_d3_0 * 256 + f_1 * 16 + y_product_i_t * 4] = (*(__global float4 *)&y_kernel[((y_product_i_t) % 2) * 4 + ((y_product_i_t) / 2) * 512 + d0_d1_d2_d3_0 * 16384 + f_0 * 32768 + f_1 * 1024 + ic_o * 8 + u_v * 262144]);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (int ic_i = 0; ic_i < 8; ic_i++) {
            #pragma unroll
            for (int y_product_cache_f_2 = 0; y_product_cache_f_2 < 4; y_product_cache_f_2++) {
                *(float4 *)&y_product_cache[y_product_cache_f_2 * 4] = ((*(float4 *)&y_product_cache[y_product_cache_f_2 * 4]) + ((*(__local float4 *)&y_columns_y_product_cache_cache[ic_i * 16 + y_product_i_t * 4]) * y_kernel_y_product_cache_cache[f_1 * 32 + ic_i + y_product_cache_f_2 * 8]));
            }
        }
    }
    #pragma unroll
    for (int f_2 = 0; f_2 < 4; f_2++) {
        *(__global float4 *)&y_product[f_0 * 1024 + f_1 * 64 + f_2 * 16 + u_v * 8192 + y_product_i_t * 4] = (*(float4 *)&y_product_cache[f_2 * 4]);
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void t_kernel_3(
    __global const char *x_buffer, const long x_first,  // f32 (512, 7, 7)
    __global const char *w_buffer, const long w_first,  // f32 (512, 512, 3, 3)
    __global char *y_buffer, const long y_first,  // f32 (512, 7, 7)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict y = (__global float *)(y_buffer + y_first);
    __global float *restrict y_product = (__global float *)(workspace_buffer + workspace_first + 0);
    const int f_i_j_o = get_group_id(0);  // 0..392
    const int f_i_j_i = get_local_id(0);  // 0..64
    y[f_i_j_i + f_i_j_o * 64] = ((((((f_i_j_i + f_i_j_o * 64) % 7)) % 2) == 0) ? (((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 32768] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 65536])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 32768] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 65536]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 98304])) + (((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 8192] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 40960] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 73728])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 40960] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 73728]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 106496])) + ((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 16384] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 49152] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 81920])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 49152] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 81920]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 114688])))) : ((((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 8192] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 40960] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 73728])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 40960] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 73728]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 106496])) - ((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 16384] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 49152] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 81920])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 49152] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 81920]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 114688]))) + ((((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) % 2) == 0) ? (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 24576] + (y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 57344] + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 90112])) : ((y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 57344] - y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 90112]) + y_product[((((((f_i_j_i + f_i_j_o * 64) / 7)) % 7)) / 2) * 4 + ((((f_i_j_i + f_i_j_o * 64) % 7)) / 2) + ((f_i_j_i + f_i_j_o * 64) / 49) * 16 + 122880]))));
}
