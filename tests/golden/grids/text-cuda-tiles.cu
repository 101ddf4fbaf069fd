
extern "C" __global__ void __launch_bounds__(8) kernel(
    const float *__restrict__ a,  // f32 (64, 64)
    const float *__restrict__ b,  // f32 (64, 64)
    float *__restrict__ c,  // f32 (64, 64)
    char *__restrict__ workspace) {
    __shared__ float a_tile[32] __align__(16);  // (8, 4)
    __shared__ float b_tile[32] __align__(16);  // (4, 8)
    const int y = blockIdx.y;  // 0..8
    const int x = blockIdx.x;  // 0..8
    const int ty = threadIdx.y;  // 0..4
    const int tx = threadIdx.x;  // 0..2
    float sums[8] __align__(16);  // (2, 4)
    #pragma unroll
    for (int m = 0; m < 2; m++) {
        *(float4 *)&sums[m * 4] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int step = 0; step < 16; step++) {
        __syncthreads();
        #pragma unroll
        for (int m_2 = 0; m_2 < 2; m_2++) {
            *(float2 *)&a_tile[m_2 * 4 + tx * 2 + ty * 8] = (*(const float2 *)&a[m_2 * 64 + step * 4 + tx * 2 + ty * 128 + y * 512]);
        }
        *(float4 *)&b_tile[tx * 4 + ty * 8] = (*(const float4 *)&b[step * 256 + tx * 4 + ty * 64 + x * 8]);
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            #pragma unroll
            for (int m_3 = 0; m_3 < 2; m_3++) {
                const float v = a_tile[k + m_3 * 4 + ty * 8];
                const float4 v_2 = (*(float4 *)&b_tile[k * 8 + tx * 4]);
                const float4 v_3 = (*(float4 *)&sums[m_3 * 4]);
                const float4 v_4 = make_float4((v * v_2.x), (v * v_2.y), (v * v_2.z), (v * v_2.w));
                *(float4 *)&sums[m_3 * 4] = make_float4((v_3.x + v_4.x), (v_3.y + v_4.y), (v_3.z + v_4.z), (v_3.w + v_4.w));
            }
        }
    }
    #pragma unroll
    for (int m_4 = 0; m_4 < 2; m_4++) {
        *(float4 *)&c[m_4 * 64 + tx * 4 + ty * 128 + x * 8 + y * 512] = (*(float4 *)&sums[m_4 * 4]);
    }
}
