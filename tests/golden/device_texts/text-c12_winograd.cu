template <int bytes>
static __device__ __forceinline__ void start_copy(void *shared, const void *global) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    if (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global),
                     "n"(bytes)
                     : "memory");
}

static __device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int batches>
static __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(batches) : "memory");
}

static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


extern "C" __global__ void __launch_bounds__(128) kernel(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_product_left,  // f32 (4, 4, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_columns = (float *)(workspace + 524288);
    const int d0_oh_t_ow_t_o = blockIdx.x;  // 0..64
    const int d0_oh_t_ow_t_i = threadIdx.x;  // 0..128
    float y_rows[16] __align__(16);  // (4, 1, 1, 4)
    #pragma unroll
    for (int y_rows_ow_1 = 0; y_rows_ow_1 < 4; y_rows_ow_1++) {
        y_rows[y_rows_ow_1] = (((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow_1 < 9) ? ((((((((d0_oh_t_ow_t_i) / 4)) % 4) < 3) && (-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow_1 <= -1)) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow_1 < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow_1 + 6] : 0.0f) : 0.0f) - ((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow_1 < 9) ? ((((-((((d0_oh_t_ow_t_i) / 4)) % 4) <= -1) && (-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow_1 <= -1)) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow_1 < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow_1 - 8] : 0.0f) : 0.0f));
    }
    #pragma unroll
    for (int y_rows_u = 0; y_rows_u < 3; y_rows_u++) {
        #pragma unroll
        for (int y_rows_ow = 0; y_rows_ow < 4; y_rows_ow++) {
            y_rows[y_rows_ow + y_rows_u * 4 + 4] = ((y_rows_u == 0) ? (((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 4)) % 4) < 3) && (-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow + 6] : 0.0f) : 0.0f) + ((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow - 1] : 0.0f) : 0.0f)) : ((y_rows_u == 1) ? (((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 4)) % 4) < 3) && (-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow + 6] : 0.0f) : 0.0f) - ((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow - 1] : 0.0f) : 0.0f)) : ((((((((d0_oh_t_ow_t_i) / 4)) % 4) < 3) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9)) ? ((((((((d0_oh_t_ow_t_i) / 4)) % 4) < 3) && (-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow + 13] : 0.0f) : 0.0f) - ((((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 4) * 2 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 4) * 2 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 4)) % 4) * 14 + ((d0_oh_t_ow_t_i) % 4) * 2 + ((d0_oh_t_ow_t_i) / 16) * 49 + d0_oh_t_ow_t_o * 392 + y_rows_ow - 1] : 0.0f) : 0.0f))));
        }
    }
    #pragma unroll
    for (int y_columns_u = 0; y_columns_u < 4; y_columns_u++) {
        y_columns[d0_oh_t_ow_t_i + d0_oh_t_ow_t_o * 128 + y_columns_u * 32768] = (y_rows[y_columns_u * 4 + 2] - y_rows[y_columns_u * 4]);
        #pragma unroll
        for (int y_columns_v = 0; y_columns_v < 3; y_columns_v++) {
            y_columns[d0_oh_t_ow_t_i + d0_oh_t_ow_t_o * 128 + y_columns_u * 32768 + y_columns_v * 8192 + 8192] = ((y_columns_v == 0) ? (y_rows[y_columns_u * 4 + 2] + y_rows[y_columns_u * 4 + 1]) : ((y_columns_v == 1) ? (y_rows[y_columns_u * 4 + 2] - y_rows[y_columns_u * 4 + 1]) : (y_rows[y_columns_u * 4 + 3] - y_rows[y_columns_u * 4 + 1])));
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) kernel_1(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_product_left,  // f32 (4, 4, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_product = (float *)(workspace + 0);
    float *__restrict__ y_columns = (float *)(workspace + 524288);
    extern __shared__ __align__(16) char shared[];
    float *const y_product_right = (float *)(shared + 0);
    float *const y_product_left_y_product_product_cache = (float *)(shared + 12288);
    const int u_v_oc_0_oh_t_ow_t_0 = blockIdx.x;  // 0..128
    const int oc_2_oh_t_ow_t_2 = threadIdx.x;  // 0..128
    float y_product_product[8] __align__(16);  // (1, 1, 1, 1, 1, 4, 1, 1, 1, 2)
    #pragma unroll
    for (int y_product_product_oc_3 = 0; y_product_product_oc_3 < 4; y_product_product_oc_3++) {
        *(float2 *)&y_product_product[y_product_product_oc_3 * 2] = make_float2(0.0f, 0.0f);
    }
    for (int u_v_ic_oh_t_ow_t_0 = 0; u_v_ic_oh_t_ow_t_0 < 2; u_v_ic_oh_t_ow_t_0++) {
        start_copy<16>(&y_product_right[oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0 * 512], &y_columns[((u_v_oc_0_oh_t_ow_t_0) / 8) * 8192 + oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0 * 512]);
    }
    for (int d0_d1_d2_d3_0 = 0; d0_d1_d2_d3_0 < 8; d0_d1_d2_d3_0++) {
        start_copy<16>(&y_product_left_y_product_product_cache[d0_d1_d2_d3_0 * 512 + oc_2_oh_t_ow_t_2 * 4], &y_product_left[((oc_2_oh_t_ow_t_2) % 16) * 4 + ((oc_2_oh_t_ow_t_2) / 16) * 512 + ((u_v_oc_0_oh_t_ow_t_0) % 8) * 64 + ((u_v_oc_0_oh_t_ow_t_0) / 8) * 262144 + d0_d1_d2_d3_0 * 4096]);
    }
    commit_copies();
    for (int u_v_ic_oh_t_ow_t_0_2 = 0; u_v_ic_oh_t_ow_t_0_2 < 2; u_v_ic_oh_t_ow_t_0_2++) {
        start_copy<16>(&y_product_right[oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0_2 * 512 + 1024], &y_columns[((u_v_oc_0_oh_t_ow_t_0) / 8) * 8192 + oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0_2 * 512 + 1024]);
    }
    for (int d0_d1_d2_d3_0_2 = 0; d0_d1_d2_d3_0_2 < 8; d0_d1_d2_d3_0_2++) {
        start_copy<16>(&y_product_left_y_product_product_cache[d0_d1_d2_d3_0_2 * 512 + oc_2_oh_t_ow_t_2 * 4 + 4096], &y_product_left[((oc_2_oh_t_ow_t_2) % 16) * 4 + ((oc_2_oh_t_ow_t_2) / 16) * 512 + ((u_v_oc_0_oh_t_ow_t_0) % 8) * 64 + ((u_v_oc_0_oh_t_ow_t_0) / 8) * 262144 + d0_d1_d2_d3_0_2 * 4096 + 32768]);
    }
    commit_copies();
    for (int ic_0 = 0; ic_0 < 8; ic_0++) {
        wait_copies<1>();
        __syncthreads();
        if (ic_0 < 6) {
            for (int u_v_ic_oh_t_ow_t_0_3 = 0; u_v_ic_oh_t_ow_t_0_3 < 2; u_v_ic_oh_t_ow_t_0_3++) {
                start_copy<16>(&y_product_right[((ic_0 + 2) % 3) * 1024 + oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0_3 * 512], &y_columns[((u_v_oc_0_oh_t_ow_t_0) / 8) * 8192 + ic_0 * 1024 + oc_2_oh_t_ow_t_2 * 4 + u_v_ic_oh_t_ow_t_0_3 * 512 + 2048]);
            }
            for (int d0_d1_d2_d3_0_3 = 0; d0_d1_d2_d3_0_3 < 8; d0_d1_d2_d3_0_3++) {
                start_copy<16>(&y_product_left_y_product_product_cache[((ic_0 + 2) % 3) * 4096 + d0_d1_d2_d3_0_3 * 512 + oc_2_oh_t_ow_t_2 * 4], &y_product_left[((oc_2_oh_t_ow_t_2) % 16) * 4 + ((oc_2_oh_t_ow_t_2) / 16) * 512 + ((u_v_oc_0_oh_t_ow_t_0) % 8) * 64 + ((u_v_oc_0_oh_t_ow_t_0) / 8) * 262144 + d0_d1_d2_d3_0_3 * 4096 + ic_0 * 32768 + 65536]);
            }
        }
        commit_copies();
        for (int ic_1 = 0; ic_1 < 8; ic_1++) {
            #pragma unroll
            for (int ic_2 = 0; ic_2 < 8; ic_2++) {
                #pragma unroll
                for (int y_product_product_oc_3_2 = 0; y_product_product_oc_3_2 < 4; y_product_product_oc_3_2++) {
                    const float v = y_product_left_y_product_product_cache[((ic_0) % 3) * 4096 + ((oc_2_oh_t_ow_t_2) / 8) * 4 + ic_1 * 512 + ic_2 * 64 + y_product_product_oc_3_2];
                    const float2 v_2 = (*(float2 *)&y_product_right[((ic_0) % 3) * 1024 + ((oc_2_oh_t_ow_t_2) % 8) * 2 + ic_1 * 128 + ic_2 * 16]);
                    const float2 v_3 = (*(float2 *)&y_product_product[y_product_product_oc_3_2 * 2]);
                    const float2 v_4 = make_float2((v * v_2.x), (v * v_2.y));
                    *(float2 *)&y_product_product[y_product_product_oc_3_2 * 2] = make_float2((v_3.x + v_4.x), (v_3.y + v_4.y));
                }
            }
        }
    }
    #pragma unroll
    for (int y_product_oc_3 = 0; y_product_oc_3 < 4; y_product_oc_3++) {
        *(float2 *)&y_product[((oc_2_oh_t_ow_t_2) % 8) * 2 + ((oc_2_oh_t_ow_t_2) / 8) * 64 + u_v_oc_0_oh_t_ow_t_0 * 1024 + y_product_oc_3 * 16] = (*(float2 *)&y_product_product[y_product_oc_3 * 2]);
    }
}

extern "C" __global__ void __launch_bounds__(128) kernel_2(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_product_left,  // f32 (4, 4, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_product = (float *)(workspace + 0);
    const int oc_oh_o_ow_o_o = blockIdx.x;  // 0..64
    const int oc_oh_o_ow_o_i = threadIdx.x;  // 0..128
    float y_sums[8] __align__(16);  // (2, 4, 1, 1, 1)
    #pragma unroll
    for (int y_sums_v = 0; y_sums_v < 4; y_sums_v++) {
        y_sums[y_sums_v] = (y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 8192] + (y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 8192 + 32768] + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 8192 + 65536]));
    }
    #pragma unroll
    for (int y_sums_v_1 = 0; y_sums_v_1 < 4; y_sums_v_1++) {
        y_sums[y_sums_v_1 + 4] = ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 8192 + 32768] - y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 8192 + 65536]) + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 8192 + 98304]);
    }
    #pragma unroll
    for (int oh_i = 0; oh_i < 2; oh_i++) {
        if (((((oc_oh_o_ow_o_i) / 4)) % 4) * 2 + oh_i < 7) {
            relu[((((oc_oh_o_ow_o_i) / 4)) % 4) * 14 + ((oc_oh_o_ow_o_i) % 4) * 2 + ((oc_oh_o_ow_o_i) / 16) * 49 + oc_oh_o_ow_o_o * 392 + oh_i * 7] = max_f32(((y_sums[oh_i * 4] + (y_sums[oh_i * 4 + 1] + y_sums[oh_i * 4 + 2])) + bias[((oc_oh_o_ow_o_i) / 16) + oc_oh_o_ow_o_o * 8]), 0.0f);
            if (((oc_oh_o_ow_o_i) % 4) < 3) {
                relu[((((oc_oh_o_ow_o_i) / 4)) % 4) * 14 + ((oc_oh_o_ow_o_i) % 4) * 2 + ((oc_oh_o_ow_o_i) / 16) * 49 + oc_oh_o_ow_o_o * 392 + oh_i * 7 + 1] = max_f32((((y_sums[oh_i * 4 + 1] - y_sums[oh_i * 4 + 2]) + y_sums[oh_i * 4 + 3]) + bias[((oc_oh_o_ow_o_i) / 16) + oc_oh_o_ow_o_o * 8]), 0.0f);
            }
        }
    }
}
