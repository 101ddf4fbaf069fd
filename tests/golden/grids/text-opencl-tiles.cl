
__kernel __attribute__((reqd_work_group_size(2, 4, 1)))
void t_kernel(
    __global const char *a_buffer, const long a_first,  // f32 (64, 64)
    __global const char *b_buffer, const long b_first,  // f32 (64, 64)
    __global char *c_buffer, const long c_first,  // f32 (64, 64)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __local float a_tile[32] __attribute__((aligned(16)));  // (8, 4)
    __local float b_tile[32] __attribute__((aligned(16)));  // (4, 8)
    const int y = get_group_id(1);  // 0..8
    const int x = get_group_id(0);  // 0..8
    const int ty = get_local_id(1);  // 0..4
    const int tx = get_local_id(0);  // 0..2
    float sums[8] __attribute__((aligned(16)));  // (2, 4)
    #pragma unroll
    for (int m = 0; m < 2; m++) {
        *(float4 *)&sums[m * 4] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int t_step = 0; t_step < 16; t_step++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (int m_2 = 0; m_2 < 2; m_2++) {
            *(__local float2 *)&a_tile[m_2 * 4 + tx * 2 + ty * 8] = (*(__global const float2 *)&a[m_2 * 64 + t_step * 4 + tx * 2 + ty * 128 + y * 512]);
        }
        *(__local float4 *)&b_tile[tx * 4 + ty * 8] = (*(__global const float4 *)&b[t_step * 256 + tx * 4 + ty * 64 + x * 8]);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            #pragma unroll
            for (int m_3 = 0; m_3 < 2; m_3++) {
                *(float4 *)&sums[m_3 * 4] = ((*(float4 *)&sums[m_3 * 4]) + (a_tile[k + m_3 * 4 + ty * 8] * (*(__local float4 *)&b_tile[k * 8 + tx * 4])));
            }
        }
    }
    #pragma unroll
    for (int m_4 = 0; m_4 < 2; m_4++) {
        *(__global float4 *)&c[m_4 * 64 + tx * 4 + ty * 128 + x * 8 + y * 512] = (*(float4 *)&sums[m_4 * 4]);
    }
}
