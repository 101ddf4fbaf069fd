static __device__ __forceinline__ float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


extern "C" __global__ void __launch_bounds__(112) kernel(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ y_left,  // f32 (3, 3, 512, 512)
    const float *__restrict__ bias,  // f32 (512)
    float *__restrict__ relu,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    __shared__ float y_right[1792] __align__(16);  // (2, 1, 1, 64, 14)
    __shared__ float y_left_y_product_cache[2048] __align__(16);  // (2, 1, 1, 64, 16)
    const int oc_0_oh_ow_0 = blockIdx.x;  // 0..128
    const int oc_2_oh_ow_2 = threadIdx.x;  // 0..112
    float y_product[2] __align__(16);  // (1, 1, 1, 2, 1, 1, 1, 1)
    #pragma unroll
    for (int y_product_oc_3 = 0; y_product_oc_3 < 2; y_product_oc_3++) {
        y_product[y_product_oc_3] = 0.0f;
    }
    for (int kh_kw_ic_oh_ow_o = 0; kh_kw_ic_oh_ow_o < 8; kh_kw_ic_oh_ow_o++) {
        y_right[kh_kw_ic_oh_ow_o * 112 + oc_2_oh_ow_2] = (((-((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48)) <= -7) && (-((((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48))) % 7) <= -1)) ? x[((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48)) + ((oc_2_oh_ow_2) / 14) * 49 + kh_kw_ic_oh_ow_o * 392 - 8] : 0.0f);
    }
    for (int d0_d1_d2_d3_0 = 0; d0_d1_d2_d3_0 < 3; d0_d1_d2_d3_0++) {
        if (d0_d1_d2_d3_0 * 112 + oc_2_oh_ow_2 < 256) {
            *(float4 *)&y_left_y_product_cache[d0_d1_d2_d3_0 * 448 + oc_2_oh_ow_2 * 4] = (*(const float4 *)&y_left[((oc_0_oh_ow_0) / 4) * 16 + ((oc_2_oh_ow_2) % 4) * 4 + ((oc_2_oh_ow_2) / 4) * 512 + d0_d1_d2_d3_0 * 14336]);
        }
    }
    for (int kh_o_kw_o_ic_0 = 0; kh_o_kw_o_ic_0 < 72; kh_o_kw_o_ic_0++) {
        float y_right_next[8] __align__(16);
        float y_left_y_product_cache_next[12] __align__(16);  // (3, 4)
        if (kh_o_kw_o_ic_0 < 71) {
            #pragma unroll
            for (int kh_kw_ic_oh_ow_o_2 = 0; kh_kw_ic_oh_ow_o_2 < 8; kh_kw_ic_oh_ow_o_2++) {
                y_right_next[kh_kw_ic_oh_ow_o_2] = (((((-((((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48))) / 7) - ((kh_o_kw_o_ic_0 + 1) / 24) <= -1) && (((((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48))) / 7) + ((kh_o_kw_o_ic_0 + 1) / 24) < 8)) && (-((((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48))) % 7) - ((((kh_o_kw_o_ic_0 + 1) / 8)) % 3) <= -1)) && (((((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48))) % 7) + ((((kh_o_kw_o_ic_0 + 1) / 8)) % 3) < 8)) ? x[((((kh_o_kw_o_ic_0 + 1) / 8)) % 3) + ((((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 48 ? ((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) : 48)) + ((kh_o_kw_o_ic_0 + 1) % 8) * 3136 + ((kh_o_kw_o_ic_0 + 1) / 24) * 7 + ((oc_2_oh_ow_2) / 14) * 49 + kh_kw_ic_oh_ow_o_2 * 392 - 8] : 0.0f);
            }
            #pragma unroll
            for (int d0_d1_d2_d3_0_2 = 0; d0_d1_d2_d3_0_2 < 3; d0_d1_d2_d3_0_2++) {
                if (d0_d1_d2_d3_0_2 * 112 + oc_2_oh_ow_2 < 256) {
                    *(float4 *)&y_left_y_product_cache_next[d0_d1_d2_d3_0_2 * 4] = (*(const float4 *)&y_left[((oc_0_oh_ow_0) / 4) * 16 + ((oc_2_oh_ow_2) % 4) * 4 + ((oc_2_oh_ow_2) / 4) * 512 + d0_d1_d2_d3_0_2 * 14336 + kh_o_kw_o_ic_0 * 32768 + 32768]);
                }
            }
        }
        __syncthreads();
        for (int ic_1 = 0; ic_1 < 8; ic_1++) {
            #pragma unroll
            for (int ic_2 = 0; ic_2 < 8; ic_2++) {
                #pragma unroll
                for (int y_product_oc_3_2 = 0; y_product_oc_3_2 < 2; y_product_oc_3_2++) {
                    y_product[y_product_oc_3_2] = (y_product[y_product_oc_3_2] + (y_left_y_product_cache[((kh_o_kw_o_ic_0) % 2) * 1024 + ((oc_2_oh_ow_2) / 14) * 2 + ic_1 * 128 + ic_2 * 16 + y_product_oc_3_2] * y_right[((kh_o_kw_o_ic_0) % 2) * 896 + ((oc_2_oh_ow_2) % 14) + ic_1 * 112 + ic_2 * 14]));
                }
            }
        }
        if (kh_o_kw_o_ic_0 < 71) {
            #pragma unroll
            for (int kh_kw_ic_oh_ow_o_3 = 0; kh_kw_ic_oh_ow_o_3 < 8; kh_kw_ic_oh_ow_o_3++) {
                y_right[((kh_o_kw_o_ic_0 + 1) % 2) * 896 + kh_kw_ic_oh_ow_o_3 * 112 + oc_2_oh_ow_2] = y_right_next[kh_kw_ic_oh_ow_o_3];
            }
            #pragma unroll
            for (int d0_d1_d2_d3_0_3 = 0; d0_d1_d2_d3_0_3 < 3; d0_d1_d2_d3_0_3++) {
                if (d0_d1_d2_d3_0_3 * 112 + oc_2_oh_ow_2 < 256) {
                    *(float4 *)&y_left_y_product_cache[((kh_o_kw_o_ic_0 + 1) % 2) * 1024 + d0_d1_d2_d3_0_3 * 448 + oc_2_oh_ow_2 * 4] = (*(float4 *)&y_left_y_product_cache_next[d0_d1_d2_d3_0_3 * 4]);
                }
            }
        }
    }
    if (((oc_0_oh_ow_0) % 4) * 14 + ((oc_2_oh_ow_2) % 14) < 49) {
        #pragma unroll
        for (int relu_oc_3 = 0; relu_oc_3 < 2; relu_oc_3++) {
            relu[((oc_0_oh_ow_0) % 4) * 14 + ((oc_0_oh_ow_0) / 4) * 784 + ((oc_2_oh_ow_2) % 14) + ((oc_2_oh_ow_2) / 14) * 98 + relu_oc_3 * 49] = max_f32((y_product[relu_oc_3] + bias[((oc_0_oh_ow_0) / 4) * 16 + ((oc_2_oh_ow_2) / 14) * 2 + relu_oc_3]), 0.0f);
        }
    }
}
