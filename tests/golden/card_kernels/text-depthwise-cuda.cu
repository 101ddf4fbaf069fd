
extern "C" __global__ void __launch_bounds__(28) kernel(
    const float *__restrict__ x,  // f32 (384, 14, 14)
    const float *__restrict__ w,  // f32 (384, 3, 3)
    float *__restrict__ y,  // f32 (384, 14, 14)
    char *__restrict__ workspace) {
    __shared__ float pad[256] __align__(16);  // (1, 16, 16)
    const int y_c = blockIdx.x;  // 0..384
    const int c_i_j_1 = threadIdx.y;  // 0..14
    const int c_i_j_2 = threadIdx.x;  // 0..2
    for (int c_i_j_0 = 0; c_i_j_0 < 10; c_i_j_0++) {
        if (c_i_j_0 * 14 + c_i_j_1 < 128) {
            pad[c_i_j_0 * 28 + c_i_j_1 * 2 + c_i_j_2] = (((((-c_i_j_0 * 14 - c_i_j_1 <= -8) && (c_i_j_0 * 14 + c_i_j_1 < 120)) && (-((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 - c_i_j_2 <= -1)) && (((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 + c_i_j_2 <= 14)) ? x[((c_i_j_0 * 14 + c_i_j_1) % 8) * 2 + ((c_i_j_0 * 14 + c_i_j_1) / 8) * 14 + c_i_j_2 + y_c * 196 - 15] : 0.0f);
        }
    }
    float y_cache[7] __align__(16);  // (1, 1, 7)
    #pragma unroll
    for (int y_cache_j = 0; y_cache_j < 7; y_cache_j++) {
        y_cache[y_cache_j] = 0.0f;
    }
    __syncthreads();
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
