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
    const float *__restrict__ y_product_left,  // f32 (6, 6, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_columns = (float *)(workspace + 294912);
    const int d0_oh_t_ow_t_o = blockIdx.x;  // 0..16
    const int d0_oh_t_ow_t_i = threadIdx.x;  // 0..128
    float y_rows[36] __align__(16);  // (6, 1, 1, 6)
    #pragma unroll
    for (int y_rows_ow_1 = 0; y_rows_ow_1 < 6; y_rows_ow_1++) {
        y_rows[y_rows_ow_1] = ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 9) ? ((((-((((d0_oh_t_ow_t_i) / 2)) % 2) <= -1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow_1 <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow_1 - 8] : 0.0f) : 0.0f) + ((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 9) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow_1 <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow_1 + 20] : 0.0f) : 0.0f)) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow_1 <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow_1 < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow_1 + 6] : 0.0f) : 0.0f) * 2.6944444f));
    }
    #pragma unroll
    for (int y_rows_u = 0; y_rows_u < 5; y_rows_u++) {
        #pragma unroll
        for (int y_rows_ow = 0; y_rows_ow < 6; y_rows_ow++) {
            y_rows[y_rows_ow + y_rows_u * 6 + 6] = ((y_rows_u == 0) ? ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 20] : 0.0f) : 0.0f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 6] : 0.0f) : 0.0f) * 2.25f)) + ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 13] : 0.0f) : 0.0f) * 0.6666667f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow - 1] : 0.0f) : 0.0f) * 1.5f))) : ((y_rows_u == 1) ? ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 20] : 0.0f) : 0.0f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 6] : 0.0f) : 0.0f) * 2.25f)) - ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 13] : 0.0f) : 0.0f) * 0.6666667f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow - 1] : 0.0f) : 0.0f) * 1.5f))) : ((y_rows_u == 2) ? ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 20] : 0.0f) : 0.0f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 6] : 0.0f) : 0.0f) * 0.44444445f)) + ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 13] : 0.0f) : 0.0f) * 1.5f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow - 1] : 0.0f) : 0.0f) * 0.6666667f))) : ((y_rows_u == 3) ? ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 20] : 0.0f) : 0.0f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 6] : 0.0f) : 0.0f) * 0.44444445f)) - ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 13] : 0.0f) : 0.0f) * 1.5f) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow - 1] : 0.0f) : 0.0f) * 0.6666667f))) : ((((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow - 1] : 0.0f) : 0.0f) + (((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9)) ? ((((((((d0_oh_t_ow_t_i) / 2)) % 2) < 1) && (-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1)) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 27] : 0.0f) : 0.0f)) - (((((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 9) ? (((-((d0_oh_t_ow_t_i) % 2) * 4 - y_rows_ow <= -1) && (((d0_oh_t_ow_t_i) % 2) * 4 + y_rows_ow < 8)) ? x[((((d0_oh_t_ow_t_i) / 2)) % 2) * 28 + ((d0_oh_t_ow_t_i) % 2) * 4 + ((d0_oh_t_ow_t_i) / 4) * 49 + d0_oh_t_ow_t_o * 1568 + y_rows_ow + 13] : 0.0f) : 0.0f) * 2.6944444f))))));
        }
    }
    #pragma unroll
    for (int y_columns_u = 0; y_columns_u < 6; y_columns_u++) {
        y_columns[d0_oh_t_ow_t_i + d0_oh_t_ow_t_o * 128 + y_columns_u * 12288] = ((y_rows[y_columns_u * 6] + y_rows[y_columns_u * 6 + 4]) - (y_rows[y_columns_u * 6 + 2] * 2.6944444f));
        #pragma unroll
        for (int y_columns_v = 0; y_columns_v < 5; y_columns_v++) {
            y_columns[d0_oh_t_ow_t_i + d0_oh_t_ow_t_o * 128 + y_columns_u * 12288 + y_columns_v * 2048 + 2048] = ((y_columns_v == 0) ? ((y_rows[y_columns_u * 6 + 4] - (y_rows[y_columns_u * 6 + 2] * 2.25f)) + ((y_rows[y_columns_u * 6 + 3] * 0.6666667f) - (y_rows[y_columns_u * 6 + 1] * 1.5f))) : ((y_columns_v == 1) ? ((y_rows[y_columns_u * 6 + 4] - (y_rows[y_columns_u * 6 + 2] * 2.25f)) - ((y_rows[y_columns_u * 6 + 3] * 0.6666667f) - (y_rows[y_columns_u * 6 + 1] * 1.5f))) : ((y_columns_v == 2) ? ((y_rows[y_columns_u * 6 + 4] - (y_rows[y_columns_u * 6 + 2] * 0.44444445f)) + ((y_rows[y_columns_u * 6 + 3] * 1.5f) - (y_rows[y_columns_u * 6 + 1] * 0.6666667f))) : ((y_columns_v == 3) ? ((y_rows[y_columns_u * 6 + 4] - (y_rows[y_columns_u * 6 + 2] * 0.44444445f)) - ((y_rows[y_columns_u * 6 + 3] * 1.5f) - (y_rows[y_columns_u * 6 + 1] * 0.6666667f))) : ((y_rows[y_columns_u * 6 + 1] + y_rows[y_columns_u * 6 + 5]) - (y_rows[y_columns_u * 6 + 3] * 2.6944444f))))));
        }
    }
}

extern "C" __global__ void __launch_bounds__(64) kernel_1(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_product_left,  // f32 (6, 6, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_product = (float *)(workspace + 0);
    float *__restrict__ y_columns = (float *)(workspace + 294912);
    __shared__ float y_product_right[192] __align__(16);  // (3, 1, 1, 16, 4)
    __shared__ float y_product_left_y_product_product_cache[6144] __align__(16);  // (3, 1, 1, 16, 128)
    const int u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i = blockIdx.x;  // 0..144
    const int oc_2_oh_t_ow_t_2 = threadIdx.x;  // 0..64
    float y_product_product[8] __align__(16);  // (1, 1, 1, 1, 1, 4, 1, 1, 1, 2)
    #pragma unroll
    for (int y_product_product_oc_3 = 0; y_product_product_oc_3 < 4; y_product_product_oc_3++) {
        *(float2 *)&y_product_product[y_product_product_oc_3 * 2] = make_float2(0.0f, 0.0f);
    }
    if (oc_2_oh_t_ow_t_2 < 16) {
        start_copy<16>(&y_product_right[oc_2_oh_t_ow_t_2 * 4], &y_columns[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 2048 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 4096 + oc_2_oh_t_ow_t_2 * 4]);
    }
    for (int d0_d1_d2_d3_0 = 0; d0_d1_d2_d3_0 < 8; d0_d1_d2_d3_0++) {
        start_copy<16>(&y_product_left_y_product_product_cache[d0_d1_d2_d3_0 * 256 + oc_2_oh_t_ow_t_2 * 4], &y_product_left[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) % 4) * 128 + ((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 262144 + ((oc_2_oh_t_ow_t_2) % 32) * 4 + ((oc_2_oh_t_ow_t_2) / 32) * 512 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 524288 + d0_d1_d2_d3_0 * 1024]);
    }
    commit_copies();
    if (oc_2_oh_t_ow_t_2 < 16) {
        start_copy<16>(&y_product_right[oc_2_oh_t_ow_t_2 * 4 + 64], &y_columns[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 2048 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 4096 + oc_2_oh_t_ow_t_2 * 4 + 64]);
    }
    for (int d0_d1_d2_d3_0_2 = 0; d0_d1_d2_d3_0_2 < 8; d0_d1_d2_d3_0_2++) {
        start_copy<16>(&y_product_left_y_product_product_cache[d0_d1_d2_d3_0_2 * 256 + oc_2_oh_t_ow_t_2 * 4 + 2048], &y_product_left[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) % 4) * 128 + ((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 262144 + ((oc_2_oh_t_ow_t_2) % 32) * 4 + ((oc_2_oh_t_ow_t_2) / 32) * 512 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 524288 + d0_d1_d2_d3_0_2 * 1024 + 8192]);
    }
    commit_copies();
    for (int ic_0 = 0; ic_0 < 32; ic_0++) {
        wait_copies<1>();
        __syncthreads();
        if (ic_0 < 30) {
            if (oc_2_oh_t_ow_t_2 < 16) {
                start_copy<16>(&y_product_right[((ic_0 + 2) % 3) * 64 + oc_2_oh_t_ow_t_2 * 4], &y_columns[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 2048 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 4096 + ic_0 * 64 + oc_2_oh_t_ow_t_2 * 4 + 128]);
            }
            for (int d0_d1_d2_d3_0_3 = 0; d0_d1_d2_d3_0_3 < 8; d0_d1_d2_d3_0_3++) {
                start_copy<16>(&y_product_left_y_product_product_cache[((ic_0 + 2) % 3) * 2048 + d0_d1_d2_d3_0_3 * 256 + oc_2_oh_t_ow_t_2 * 4], &y_product_left[((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) % 4) * 128 + ((((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) % 8)) / 4) * 262144 + ((oc_2_oh_t_ow_t_2) % 32) * 4 + ((oc_2_oh_t_ow_t_2) / 32) * 512 + ((u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i) / 8) * 524288 + d0_d1_d2_d3_0_3 * 1024 + ic_0 * 8192 + 16384]);
            }
        }
        commit_copies();
        for (int ic_1 = 0; ic_1 < 2; ic_1++) {
            #pragma unroll
            for (int ic_2 = 0; ic_2 < 8; ic_2++) {
                #pragma unroll
                for (int y_product_product_oc_3_2 = 0; y_product_product_oc_3_2 < 4; y_product_product_oc_3_2++) {
                    const float v = y_product_left_y_product_product_cache[((ic_0) % 3) * 2048 + ((oc_2_oh_t_ow_t_2) / 2) * 4 + ic_1 * 1024 + ic_2 * 128 + y_product_product_oc_3_2];
                    const float2 v_2 = (*(float2 *)&y_product_right[((ic_0) % 3) * 64 + ((oc_2_oh_t_ow_t_2) % 2) * 2 + ic_1 * 32 + ic_2 * 4]);
                    const float2 v_3 = (*(float2 *)&y_product_product[y_product_product_oc_3_2 * 2]);
                    const float2 v_4 = make_float2((v * v_2.x), (v * v_2.y));
                    *(float2 *)&y_product_product[y_product_product_oc_3_2 * 2] = make_float2((v_3.x + v_4.x), (v_3.y + v_4.y));
                }
            }
        }
    }
    #pragma unroll
    for (int y_product_oc_3 = 0; y_product_oc_3 < 4; y_product_oc_3++) {
        *(float2 *)&y_product[((oc_2_oh_t_ow_t_2) % 2) * 2 + ((oc_2_oh_t_ow_t_2) / 2) * 16 + u_v_oc_0_o_oh_t_ow_t_0_u_v_oc_0_i * 512 + y_product_oc_3 * 4] = (*(float2 *)&y_product_product[y_product_oc_3 * 2]);
    }
}

extern "C" __global__ void __launch_bounds__(128) kernel_2(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_product_left,  // f32 (6, 6, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    float *__restrict__ y_product = (float *)(workspace + 0);
    const int oc_oh_o_ow_o_o = blockIdx.x;  // 0..16
    const int oc_oh_o_ow_o_i = threadIdx.x;  // 0..128
    float y_sums[24] __align__(16);  // (4, 6, 1, 1, 1)
    #pragma unroll
    for (int y_sums_v_1 = 0; y_sums_v_1 < 6; y_sums_v_1++) {
        y_sums[y_sums_v_1] = ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 2048] + (y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 2048 + 12288] + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 2048 + 24576])) + (y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 2048 + 36864] + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v_1 * 2048 + 49152]));
    }
    #pragma unroll
    for (int p = 0; p < 3; p++) {
        #pragma unroll
        for (int y_sums_v = 0; y_sums_v < 6; y_sums_v++) {
            y_sums[p * 6 + y_sums_v + 6] = ((p == 0) ? (((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 12288] - y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 24576]) * 0.6666667f) + ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 36864] - y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 49152]) * 1.5f)) : ((p == 1) ? (((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 12288] + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 24576]) * 0.44444445f) + ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 36864] + y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 49152]) * 2.25f)) : ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 61440] + ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 12288] - y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 24576]) * 0.2962963f)) + ((y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 36864] - y_product[oc_oh_o_ow_o_i + oc_oh_o_ow_o_o * 128 + y_sums_v * 2048 + 49152]) * 3.375f))));
        }
    }
    #pragma unroll
    for (int oh_i = 0; oh_i < 4; oh_i++) {
        if (((((oc_oh_o_ow_o_i) / 2)) % 2) * 4 + oh_i < 7) {
            relu[((((oc_oh_o_ow_o_i) / 2)) % 2) * 28 + ((oc_oh_o_ow_o_i) % 2) * 4 + ((oc_oh_o_ow_o_i) / 4) * 49 + oc_oh_o_ow_o_o * 1568 + oh_i * 7] = max_f32((((y_sums[oh_i * 6] + (y_sums[oh_i * 6 + 1] + y_sums[oh_i * 6 + 2])) + (y_sums[oh_i * 6 + 3] + y_sums[oh_i * 6 + 4])) + bias[((oc_oh_o_ow_o_i) / 4) + oc_oh_o_ow_o_o * 32]), 0.0f);
            #pragma unroll
            for (int ow_i = 0; ow_i < 3; ow_i++) {
                if (((oc_oh_o_ow_o_i) % 2) * 4 + ow_i < 6) {
                    relu[((((oc_oh_o_ow_o_i) / 2)) % 2) * 28 + ((oc_oh_o_ow_o_i) % 2) * 4 + ((oc_oh_o_ow_o_i) / 4) * 49 + oc_oh_o_ow_o_o * 1568 + oh_i * 7 + ow_i + 1] = max_f32((((ow_i == 0) ? (((y_sums[oh_i * 6 + 1] - y_sums[oh_i * 6 + 2]) * 0.6666667f) + ((y_sums[oh_i * 6 + 3] - y_sums[oh_i * 6 + 4]) * 1.5f)) : ((ow_i == 1) ? (((y_sums[oh_i * 6 + 1] + y_sums[oh_i * 6 + 2]) * 0.44444445f) + ((y_sums[oh_i * 6 + 3] + y_sums[oh_i * 6 + 4]) * 2.25f)) : ((y_sums[oh_i * 6 + 5] + ((y_sums[oh_i * 6 + 1] - y_sums[oh_i * 6 + 2]) * 0.2962963f)) + ((y_sums[oh_i * 6 + 3] - y_sums[oh_i * 6 + 4]) * 3.375f)))) + bias[((oc_oh_o_ow_o_i) / 4) + oc_oh_o_ow_o_o * 32]), 0.0f);
                }
            }
        }
    }
}
