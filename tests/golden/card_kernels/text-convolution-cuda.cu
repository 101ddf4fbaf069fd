
extern "C" __global__ void __launch_bounds__(112) kernel(
    const float *__restrict__ x,  // f32 (512, 7, 7)
    const float *__restrict__ w,  // f32 (512, 512, 3, 3)
    float *__restrict__ y,  // f32 (512, 7, 7)
    char *__restrict__ workspace) {
    __shared__ float pad[648] __align__(16);  // (8, 9, 9)
    __shared__ float w_y_cache_cache[2304] __align__(16);  // (32, 8, 3, 3)
    const int f_0 = blockIdx.x;  // 0..16
    const int f_1 = threadIdx.y;  // 0..16
    const int y_i = threadIdx.x;  // 0..7
    float y_cache[14] __align__(16);  // (2, 1, 7)
    #pragma unroll
    for (int y_cache_f = 0; y_cache_f < 2; y_cache_f++) {
        #pragma unroll
        for (int y_cache_j = 0; y_cache_j < 7; y_cache_j++) {
            y_cache[y_cache_f * 7 + y_cache_j] = 0.0f;
        }
    }
    for (int ic_o = 0; ic_o < 64; ic_o++) {
        __syncthreads();
        for (int c_i_j_0 = 0; c_i_j_0 < 6; c_i_j_0++) {
            if (c_i_j_0 * 112 + f_1 * 7 + y_i < 648) {
                pad[c_i_j_0 * 112 + f_1 * 7 + y_i] = (((((-((((c_i_j_0 * 112 + f_1 * 7 + y_i) / 9)) % 9) <= -1) && (((((c_i_j_0 * 112 + f_1 * 7 + y_i) / 9)) % 9) <= 7)) && (-((c_i_j_0 * 112 + f_1 * 7 + y_i) % 9) <= -1)) && (((c_i_j_0 * 112 + f_1 * 7 + y_i) % 9) <= 7)) ? x[((((c_i_j_0 * 112 + f_1 * 7 + y_i) / 9)) % 9) * 7 + ((c_i_j_0 * 112 + f_1 * 7 + y_i) % 9) + ((c_i_j_0 * 112 + f_1 * 7 + y_i) / 81) * 49 + ic_o * 392 - 8] : 0.0f);
            }
        }
        for (int d0_d1_d2_d3_0 = 0; d0_d1_d2_d3_0 < 6; d0_d1_d2_d3_0++) {
            __syncthreads();
            if (d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i < 576) {
                w_y_cache_cache[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 72 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) % 3)] = w[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 4608 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) % 3) + f_0 * 147456 + ic_o * 72];
                w_y_cache_cache[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 72 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) % 3)] = w[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 4608 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 1) % 3) + f_0 * 147456 + ic_o * 72];
                w_y_cache_cache[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 72 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) % 3)] = w[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) / 3)) % 3) * 3 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) / 9)) % 8) * 9 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 4608 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 2) % 3) + f_0 * 147456 + ic_o * 72];
                w_y_cache_cache[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 3) / 9)) % 8) * 9 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 3) + 1) % 3) * 3 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 72 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) % 3)] = w[((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4 + 3) / 9)) % 8) * 9 + ((((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) / 3) + 1) % 3) * 3 + ((d0_d1_d2_d3_0 * 112 + f_1 * 7 + y_i) / 18) * 4608 + ((d0_d1_d2_d3_0 * 448 + f_1 * 28 + y_i * 4) % 3) + f_0 * 147456 + ic_o * 72];
            }
        }
        __syncthreads();
        #pragma unroll
        for (int ic_i = 0; ic_i < 8; ic_i++) {
            #pragma unroll
            for (int kh = 0; kh < 3; kh++) {
                #pragma unroll
                for (int kw = 0; kw < 3; kw++) {
                    #pragma unroll
                    for (int y_cache_f_2 = 0; y_cache_f_2 < 2; y_cache_f_2++) {
                        #pragma unroll
                        for (int y_cache_j_2 = 0; y_cache_j_2 < 7; y_cache_j_2++) {
                            y_cache[y_cache_f_2 * 7 + y_cache_j_2] = (y_cache[y_cache_f_2 * 7 + y_cache_j_2] + (pad[ic_i * 81 + kh * 9 + kw + y_cache_j_2 + y_i * 9] * w_y_cache_cache[f_1 * 144 + ic_i * 9 + kh * 3 + kw + y_cache_f_2 * 72]));
                        }
                    }
                }
            }
        }
    }
    #pragma unroll
    for (int f_2 = 0; f_2 < 2; f_2++) {
        #pragma unroll
        for (int y_j = 0; y_j < 7; y_j++) {
            y[f_0 * 1568 + f_1 * 98 + f_2 * 49 + y_i * 7 + y_j] = y_cache[f_2 * 7 + y_j];
        }
    }
}
