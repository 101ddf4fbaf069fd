
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void split(
    __global const char *a_buffer, const long a_first,  // f32 (16, 1024)
    __global const char *b_buffer, const long b_first,  // f32 (1024, 32)
    __global char *c_buffer, const long c_first,  // f32 (16, 32)
    __global char *workspace_buffer, const long workspace_first) {
    __global const float *restrict a = (__global const float *)(a_buffer + a_first);
    __global const float *restrict b = (__global const float *)(b_buffer + b_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    __local float c_rf_left[640] __attribute__((aligned(16)));  // (2, 1, 16, 16)
    __local float c_rf_right[1024] __attribute__((aligned(16)));  // (2, 1, 16, 32)
    const int k_o_i_0_j_0 = get_group_id(0);  // 0..8
    const int i_2_j_2 = get_local_id(0);  // 0..64
    float c_rf_product[8] __attribute__((aligned(16)));  // (1, 1, 1, 1, 4, 1, 1, 1, 2)
    #pragma unroll
    for (int c_rf_product_i_3 = 0; c_rf_product_i_3 < 4; c_rf_product_i_3++) {
        *(float2 *)&c_rf_product[c_rf_product_i_3 * 2] = (float2)(0.0f, 0.0f);
    }
    const float4 v = (*(__global const float4 *)&a[((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + k_o_i_0_j_0 * 128]);
    c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4)] = v.s0;
    c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + 20] = v.s1;
    c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + 40] = v.s2;
    c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + 60] = v.s3;
    for (int k_o_k_i_j_0 = 0; k_o_k_i_j_0 < 2; k_o_k_i_j_0++) {
        *(__local float4 *)&c_rf_right[i_2_j_2 * 4 + k_o_k_i_j_0 * 256] = (*(__global const float4 *)&b[i_2_j_2 * 4 + k_o_i_0_j_0 * 4096 + k_o_k_i_j_0 * 256]);
    }
    for (int k_i_0 = 0; k_i_0 < 8; k_i_0++) {
        float c_rf_left_next[4] __attribute__((aligned(16)));
        float c_rf_right_next[8] __attribute__((aligned(16)));  // (2, 4)
        if (k_i_0 < 7) {
            *(float4 *)&c_rf_left_next[0] = (*(__global const float4 *)&a[((i_2_j_2) % 4) * 4 + ((i_2_j_2) / 4) * 1024 + k_i_0 * 16 + k_o_i_0_j_0 * 128 + 16]);
            #pragma unroll
            for (int k_o_k_i_j_0_2 = 0; k_o_k_i_j_0_2 < 2; k_o_k_i_j_0_2++) {
                *(float4 *)&c_rf_right_next[k_o_k_i_j_0_2 * 4] = (*(__global const float4 *)&b[i_2_j_2 * 4 + k_i_0 * 512 + k_o_i_0_j_0 * 4096 + k_o_k_i_j_0_2 * 256 + 512]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int k_i_1 = 0; k_i_1 < 2; k_i_1++) {
            #pragma unroll
            for (int k_i_2 = 0; k_i_2 < 8; k_i_2++) {
                #pragma unroll
                for (int c_rf_product_i_3_2 = 0; c_rf_product_i_3_2 < 4; c_rf_product_i_3_2++) {
                    *(float2 *)&c_rf_product[c_rf_product_i_3_2 * 2] = ((*(float2 *)&c_rf_product[c_rf_product_i_3_2 * 2]) + (c_rf_left[((i_2_j_2) / 16) * 4 + ((k_i_0) % 2) * 320 + c_rf_product_i_3_2 + k_i_1 * 160 + k_i_2 * 20] * (*(__local float2 *)&c_rf_right[((i_2_j_2) % 16) * 2 + ((k_i_0) % 2) * 512 + k_i_1 * 256 + k_i_2 * 32])));
                }
            }
        }
        if (k_i_0 < 7) {
            const float4 v_2 = (*(float4 *)&c_rf_left_next[0]);
            c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 320] = v_2.s0;
            c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 320 + 20] = v_2.s1;
            c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 320 + 40] = v_2.s2;
            c_rf_left[((i_2_j_2) % 4) * 80 + ((i_2_j_2) / 4) + ((k_i_0 + 1) % 2) * 320 + 60] = v_2.s3;
            #pragma unroll
            for (int k_o_k_i_j_0_3 = 0; k_o_k_i_j_0_3 < 2; k_o_k_i_j_0_3++) {
                *(__local float4 *)&c_rf_right[((k_i_0 + 1) % 2) * 512 + i_2_j_2 * 4 + k_o_k_i_j_0_3 * 256] = (*(float4 *)&c_rf_right_next[k_o_k_i_j_0_3 * 4]);
            }
        }
    }
    #pragma unroll
    for (int c_rf_i_3 = 0; c_rf_i_3 < 4; c_rf_i_3++) {
        *(__global float2 *)&c_rf[((i_2_j_2) % 16) * 2 + ((i_2_j_2) / 16) * 128 + c_rf_i_3 * 32 + k_o_i_0_j_0 * 512] = (*(float2 *)&c_rf_product[c_rf_i_3 * 2]);
    }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void split_1(
    __global const char *a_buffer, const long a_first,  // f32 (16, 1024)
    __global const char *b_buffer, const long b_first,  // f32 (1024, 32)
    __global char *c_buffer, const long c_first,  // f32 (16, 32)
    __global char *workspace_buffer, const long workspace_first) {
    __global float *restrict c = (__global float *)(c_buffer + c_first);
    __global float *restrict c_rf = (__global float *)(workspace_buffer + workspace_first + 0);
    const int i_j_0 = get_group_id(0);  // 0..16
    const int i_j_2 = get_local_id(0);  // 0..32
    c[i_j_0 * 32 + i_j_2] = 0.0f;
    float c_kept;
    c_kept = c[i_j_0 * 32 + i_j_2];
    for (int c_k_o = 0; c_k_o < 8; c_k_o++) {
        c_kept = (c_kept + c_rf[c_k_o * 512 + i_j_0 * 32 + i_j_2]);
    }
    c[i_j_0 * 32 + i_j_2] = c_kept;
}
