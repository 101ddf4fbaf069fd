
extern "C" __global__ void __launch_bounds__(64) kernel(
    const float *__restrict__ a,  // f32 (1024, 1024)
    const float *__restrict__ c_right,  // f32 (1024, 1024)
    float *__restrict__ c,  // f32 (1024, 1024)
    char *__restrict__ workspace) {
    __shared__ float c_left[2176] __align__(16);  // (2, 16, 64)
    __shared__ float c_right_c_product_cache[2048] __align__(16);  // (2, 16, 64)
    const int i_0_j_0 = blockIdx.x;  // 0..256
    const int i_2_j_2 = threadIdx.x;  // 0..64
    float c_product[64] __align__(16);  // (1, 1, 1, 4, 1, 4, 1, 4)
    #pragma unroll
    for (int c_product_j_1 = 0; c_product_j_1 < 4; c_product_j_1++) {
        #pragma unroll
        for (int c_product_i_3 = 0; c_product_i_3 < 4; c_product_i_3++) {
            *(float4 *)&c_product[c_product_i_3 * 16 + c_product_j_1 * 4] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    for (int i_k_0 = 0; i_k_0 < 4; i_k_0++) {
        const float4 v = (*(const float4 *)&a[((i_0_j_0) / 16) * 65536 + ((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + i_k_0 * 16384]);
        c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + i_k_0 * 16] = v.x;
        c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + i_k_0 * 16 + 68] = v.y;
        c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + i_k_0 * 16 + 136] = v.z;
        c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + i_k_0 * 16 + 204] = v.w;
    }
    for (int d0_d1_0 = 0; d0_d1_0 < 4; d0_d1_0++) {
        *(float4 *)&c_right_c_product_cache[d0_d1_0 * 256 + i_2_j_2 * 4] = (*(const float4 *)&c_right[((i_0_j_0) % 16) * 64 + ((i_2_j_2) % 16) * 4 + ((i_2_j_2) / 16) * 1024 + d0_d1_0 * 4096]);
    }
    for (int k_0 = 0; k_0 < 64; k_0++) {
        float c_left_next[16] __align__(16);  // (4, 4)
        float c_right_c_product_cache_next[16] __align__(16);  // (4, 4)
        if (k_0 < 63) {
            #pragma unroll
            for (int i_k_0_2 = 0; i_k_0_2 < 4; i_k_0_2++) {
                *(float4 *)&c_left_next[i_k_0_2 * 4] = (*(const float4 *)&a[((i_0_j_0) / 16) * 65536 + ((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + i_k_0_2 * 16384 + k_0 * 16 + 16]);
            }
            #pragma unroll
            for (int d0_d1_0_2 = 0; d0_d1_0_2 < 4; d0_d1_0_2++) {
                *(float4 *)&c_right_c_product_cache_next[d0_d1_0_2 * 4] = (*(const float4 *)&c_right[((i_0_j_0) % 16) * 64 + ((i_2_j_2) % 16) * 4 + ((i_2_j_2) / 16) * 1024 + d0_d1_0_2 * 4096 + k_0 * 16384 + 16384]);
            }
        }
        __syncthreads();
        for (int k_1 = 0; k_1 < 2; k_1++) {
            #pragma unroll
            for (int k_2 = 0; k_2 < 8; k_2++) {
                #pragma unroll
                for (int c_product_j_1_2 = 0; c_product_j_1_2 < 4; c_product_j_1_2++) {
                    #pragma unroll
                    for (int c_product_i_3_2 = 0; c_product_i_3_2 < 4; c_product_i_3_2++) {
                        const float v_2 = c_left[((i_2_j_2) / 4) * 4 + ((k_0) % 2) * 1088 + c_product_i_3_2 + k_1 * 544 + k_2 * 68];
                        const float4 v_3 = (*(float4 *)&c_right_c_product_cache[((i_2_j_2) % 4) * 4 + ((k_0) % 2) * 1024 + c_product_j_1_2 * 16 + k_1 * 512 + k_2 * 64]);
                        const float4 v_4 = (*(float4 *)&c_product[c_product_i_3_2 * 16 + c_product_j_1_2 * 4]);
                        const float4 v_5 = make_float4((v_2 * v_3.x), (v_2 * v_3.y), (v_2 * v_3.z), (v_2 * v_3.w));
                        *(float4 *)&c_product[c_product_i_3_2 * 16 + c_product_j_1_2 * 4] = make_float4((v_4.x + v_5.x), (v_4.y + v_5.y), (v_4.z + v_5.z), (v_4.w + v_5.w));
                    }
                }
            }
        }
        if (k_0 < 63) {
            #pragma unroll
            for (int i_k_0_3 = 0; i_k_0_3 < 4; i_k_0_3++) {
                const float4 v_6 = (*(float4 *)&c_left_next[i_k_0_3 * 4]);
                c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + ((k_0 + 1) % 2) * 1088 + i_k_0_3 * 16] = v_6.x;
                c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + ((k_0 + 1) % 2) * 1088 + i_k_0_3 * 16 + 68] = v_6.y;
                c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + ((k_0 + 1) % 2) * 1088 + i_k_0_3 * 16 + 136] = v_6.z;
                c_left[((i_2_j_2) % 4) * 272 + ((i_2_j_2) / 4) + ((k_0 + 1) % 2) * 1088 + i_k_0_3 * 16 + 204] = v_6.w;
            }
            #pragma unroll
            for (int d0_d1_0_3 = 0; d0_d1_0_3 < 4; d0_d1_0_3++) {
                *(float4 *)&c_right_c_product_cache[((k_0 + 1) % 2) * 1024 + d0_d1_0_3 * 256 + i_2_j_2 * 4] = (*(float4 *)&c_right_c_product_cache_next[d0_d1_0_3 * 4]);
            }
        }
    }
    #pragma unroll
    for (int c_j_1 = 0; c_j_1 < 4; c_j_1++) {
        #pragma unroll
        for (int c_i_3 = 0; c_i_3 < 4; c_i_3++) {
            *(float4 *)&c[((i_0_j_0) % 16) * 64 + ((i_0_j_0) / 16) * 65536 + ((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 4096 + c_i_3 * 1024 + c_j_1 * 16] = (*(float4 *)&c_product[c_i_3 * 16 + c_j_1 * 4]);
        }
    }
}
