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


extern "C" __global__ void __launch_bounds__(8) kernel(
    const float *__restrict__ a,  // f32 (16, 32)
    const float *__restrict__ b,  // f32 (32, 24)
    float *__restrict__ c,  // f32 (16, 24)
    char *__restrict__ workspace) {
    __shared__ float a_c_cache_cache[96] __align__(16);  // (3, 8, 4)
    __shared__ float b_c_cache_cache[96] __align__(16);  // (3, 4, 8)
    const int i_0 = blockIdx.y;  // 0..2
    const int j_0 = blockIdx.x;  // 0..3
    const int i_1 = threadIdx.y;  // 0..4
    const int j_1 = threadIdx.x;  // 0..2
    float c_cache[8] __align__(16);  // (2, 4)
    #pragma unroll
    for (int c_cache_i = 0; c_cache_i < 2; c_cache_i++) {
        #pragma unroll
        for (int c_cache_j = 0; c_cache_j < 4; c_cache_j++) {
            c_cache[c_cache_i * 4 + c_cache_j] = 0.0f;
        }
    }
    start_copy<16>(&a_c_cache_cache[i_1 * 8 + j_1 * 4], &a[i_0 * 256 + i_1 * 64 + j_1 * 32]);
    start_copy<16>(&b_c_cache_cache[i_1 * 8 + j_1 * 4], &b[i_1 * 24 + j_0 * 8 + j_1 * 4]);
    commit_copies();
    start_copy<16>(&a_c_cache_cache[i_1 * 8 + j_1 * 4 + 32], &a[i_0 * 256 + i_1 * 64 + j_1 * 32 + 4]);
    start_copy<16>(&b_c_cache_cache[i_1 * 8 + j_1 * 4 + 32], &b[i_1 * 24 + j_0 * 8 + j_1 * 4 + 96]);
    commit_copies();
    for (int k_o = 0; k_o < 8; k_o++) {
        wait_copies<1>();
        __syncthreads();
        if (k_o < 6) {
            start_copy<16>(&a_c_cache_cache[((k_o + 2) % 3) * 32 + i_1 * 8 + j_1 * 4], &a[i_0 * 256 + i_1 * 64 + j_1 * 32 + k_o * 4 + 8]);
            start_copy<16>(&b_c_cache_cache[((k_o + 2) % 3) * 32 + i_1 * 8 + j_1 * 4], &b[i_1 * 24 + j_0 * 8 + j_1 * 4 + k_o * 96 + 192]);
        }
        commit_copies();
        for (int k_i = 0; k_i < 4; k_i++) {
            #pragma unroll
            for (int c_cache_i_2 = 0; c_cache_i_2 < 2; c_cache_i_2++) {
                #pragma unroll
                for (int c_cache_j_2 = 0; c_cache_j_2 < 4; c_cache_j_2++) {
                    c_cache[c_cache_i_2 * 4 + c_cache_j_2] = (c_cache[c_cache_i_2 * 4 + c_cache_j_2] + (a_c_cache_cache[((k_o) % 3) * 32 + c_cache_i_2 * 4 + i_1 * 8 + k_i] * b_c_cache_cache[((k_o) % 3) * 32 + c_cache_j_2 + j_1 * 4 + k_i * 8]));
                }
            }
        }
    }
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2++) {
        #pragma unroll
        for (int j_2 = 0; j_2 < 4; j_2++) {
            c[i_0 * 192 + i_1 * 48 + i_2 * 24 + j_0 * 8 + j_1 * 4 + j_2] = c_cache[i_2 * 4 + j_2];
        }
    }
}
