static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


extern "C" __global__ void __launch_bounds__(64) kernel(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_left,  // f32 (3, 3, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    __shared__ float y_right[256] __align__(16);  // (2, 1, 1, 16, 8)
    __shared__ float y_left_y_product_cache[512] __align__(16);  // (2, 1, 1, 16, 16)
    const int oc_0_oh_ow_0 = blockIdx.x;  // 0..224
    const int oc_2_oh_ow_2 = threadIdx.x;  // 0..64
    float y_product[2] __align__(16);  // (1, 1, 1, 2, 1, 1, 1, 1)
    #pragma unroll
    for (int y_product_oc_3 = 0; y_product_oc_3 < 2; y_product_oc_3++) {
        y_product[y_product_oc_3] = 0.0f;
    }
    for (int kh_kw_ic_oh_ow_o = 0; kh_kw_ic_oh_ow_o < 2; kh_kw_ic_oh_ow_o++) {
        y_right[kh_kw_ic_oh_ow_o * 64 + oc_2_oh_ow_2] = (((-((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48)) <= -7) && (-((((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48))) % 7) <= -1)) ? x[((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48)) + ((oc_2_oh_ow_2) / 8) * 49 + kh_kw_ic_oh_ow_o * 392 - 8] : 0.0f);
    }
    *(float4 *)&y_left_y_product_cache[oc_2_oh_ow_2 * 4] = (*(const float4 *)&y_left[((oc_0_oh_ow_0) / 7) * 16 + ((oc_2_oh_ow_2) % 4) * 4 + ((oc_2_oh_ow_2) / 4) * 512]);
    for (int kh_o_kw_o_ic_0 = 0; kh_o_kw_o_ic_0 < 288; kh_o_kw_o_ic_0++) {
        float y_right_next[2] __align__(16);
        float y_left_y_product_cache_next[4] __align__(16);
        if (kh_o_kw_o_ic_0 < 287) {
            #pragma unroll
            for (int kh_kw_ic_oh_ow_o_2 = 0; kh_kw_ic_oh_ow_o_2 < 2; kh_kw_ic_oh_ow_o_2++) {
                y_right_next[kh_kw_ic_oh_ow_o_2] = (((((-((((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48))) / 7) - ((kh_o_kw_o_ic_0 + 1) / 96) <= -1) && (((((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48))) / 7) + ((kh_o_kw_o_ic_0 + 1) / 96) < 8)) && (-((((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48))) % 7) - ((((kh_o_kw_o_ic_0 + 1) / 32)) % 3) <= -1)) && (((((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48))) % 7) + ((((kh_o_kw_o_ic_0 + 1) / 32)) % 3) < 8)) ? x[((((kh_o_kw_o_ic_0 + 1) / 32)) % 3) + ((((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 48 ? ((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) : 48)) + ((kh_o_kw_o_ic_0 + 1) % 32) * 784 + ((kh_o_kw_o_ic_0 + 1) / 96) * 7 + ((oc_2_oh_ow_2) / 8) * 49 + kh_kw_ic_oh_ow_o_2 * 392 - 8] : 0.0f);
            }
            *(float4 *)&y_left_y_product_cache_next[0] = (*(const float4 *)&y_left[((oc_0_oh_ow_0) / 7) * 16 + ((oc_2_oh_ow_2) % 4) * 4 + ((oc_2_oh_ow_2) / 4) * 512 + kh_o_kw_o_ic_0 * 8192 + 8192]);
        }
        __syncthreads();
        for (int ic_1 = 0; ic_1 < 2; ic_1++) {
            #pragma unroll
            for (int ic_2 = 0; ic_2 < 8; ic_2++) {
                #pragma unroll
                for (int y_product_oc_3_2 = 0; y_product_oc_3_2 < 2; y_product_oc_3_2++) {
                    y_product[y_product_oc_3_2] = (y_product[y_product_oc_3_2] + (y_left_y_product_cache[((kh_o_kw_o_ic_0) % 2) * 256 + ((oc_2_oh_ow_2) / 8) * 2 + ic_1 * 128 + ic_2 * 16 + y_product_oc_3_2] * y_right[((kh_o_kw_o_ic_0) % 2) * 128 + ((oc_2_oh_ow_2) % 8) + ic_1 * 64 + ic_2 * 8]));
                }
            }
        }
        if (kh_o_kw_o_ic_0 < 287) {
            #pragma unroll
            for (int kh_kw_ic_oh_ow_o_3 = 0; kh_kw_ic_oh_ow_o_3 < 2; kh_kw_ic_oh_ow_o_3++) {
                y_right[((kh_o_kw_o_ic_0 + 1) % 2) * 128 + kh_kw_ic_oh_ow_o_3 * 64 + oc_2_oh_ow_2] = y_right_next[kh_kw_ic_oh_ow_o_3];
            }
            *(float4 *)&y_left_y_product_cache[((kh_o_kw_o_ic_0 + 1) % 2) * 256 + oc_2_oh_ow_2 * 4] = (*(float4 *)&y_left_y_product_cache_next[0]);
        }
    }
    if (((oc_0_oh_ow_0) % 7) * 8 + ((oc_2_oh_ow_2) % 8) < 49) {
        #pragma unroll
        for (int relu_oc_3 = 0; relu_oc_3 < 2; relu_oc_3++) {
            relu[((oc_0_oh_ow_0) % 7) * 8 + ((oc_0_oh_ow_0) / 7) * 784 + ((oc_2_oh_ow_2) % 8) + ((oc_2_oh_ow_2) / 8) * 98 + relu_oc_3 * 49] = max_f32((y_product[relu_oc_3] + bias[((oc_0_oh_ow_0) / 7) * 16 + ((oc_2_oh_ow_2) / 8) * 2 + relu_oc_3]), 0.0f);
        }
    }
}
