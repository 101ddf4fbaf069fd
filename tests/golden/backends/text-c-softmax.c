#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef float f32x4_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16)));

static inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


static void softmax_main(const float *restrict x, float *restrict softmax, char *workspace, char *slice, int threads) {
    (void)workspace;
    (void)slice;
    (void)threads;
    for (int64_t i_o = 0; i_o < 3; i_o++) {
        {
            f32x8 softmax_max_rf_0 __attribute__((unused)) = {0};
            {
                float softmax_max_0 __attribute__((unused)) = 0;
                {
                    float softmax_exp[24] __attribute__((aligned(64), unused));
                    {
                        f32x8 softmax_sum_rf_0 __attribute__((unused)) = {0};
                        {
                            float softmax_sum_0 __attribute__((unused)) = 0;
                            const float v = (-INFINITY);
                            softmax_max_rf_0 = (f32x8){v, v, v, v, v, v, v, v};
                            for (int64_t softmax_max_rf_rj_o = 0; softmax_max_rf_rj_o < 2; softmax_max_rf_rj_o++) {
                                const f32x8 v_2 = (*(const f32x8_anywhere *)&x[i_o * 21 + softmax_max_rf_rj_o * 8]);
                                const i32x8 v_3 = (i32x8)((softmax_max_rf_0 > v_2) | (softmax_max_rf_0 != softmax_max_rf_0));
                                softmax_max_rf_0 = ((f32x8)(((i32x8)softmax_max_rf_0 & v_3) | ((i32x8)v_2 & ~v_3)));
                            }
                            const f32x8 v_4 = (f32x8){x[i_o * 21 + 16], x[i_o * 21 + 17], x[i_o * 21 + 18], x[i_o * 21 + 19], x[i_o * 21 + 20], (-INFINITY), (-INFINITY), (-INFINITY)};
                            const i32x8 v_5 = (i32x8)((softmax_max_rf_0 > v_4) | (softmax_max_rf_0 != softmax_max_rf_0));
                            softmax_max_rf_0 = ((f32x8)(((i32x8)softmax_max_rf_0 & v_5) | ((i32x8)v_4 & ~v_5)));
                            softmax_max_0 = (-INFINITY);
                            const float v_6 = max_f32(softmax_max_rf_0[0], softmax_max_rf_0[4]);
                            const float v_7 = max_f32(softmax_max_rf_0[1], softmax_max_rf_0[5]);
                            const float v_8 = max_f32(softmax_max_rf_0[2], softmax_max_rf_0[6]);
                            const float v_9 = max_f32(softmax_max_rf_0[3], softmax_max_rf_0[7]);
                            const float v_10 = max_f32(v_6, v_8);
                            const float v_11 = max_f32(v_7, v_9);
                            const float v_12 = max_f32(v_10, v_11);
                            softmax_max_0 = max_f32(softmax_max_0, v_12);
                            for (int64_t softmax_exp_j_o = 0; softmax_exp_j_o < 2; softmax_exp_j_o++) {
                                const f32x8 v_13 = ((*(const f32x8_anywhere *)&x[i_o * 21 + softmax_exp_j_o * 8]) - softmax_max_0);
                                *(f32x8_anywhere *)&softmax_exp[softmax_exp_j_o * 8] = (f32x8){expf(v_13[0]), expf(v_13[1]), expf(v_13[2]), expf(v_13[3]), expf(v_13[4]), expf(v_13[5]), expf(v_13[6]), expf(v_13[7])};
                            }
                            const f32x4 v_14 = ((*(const f32x4_anywhere *)&x[i_o * 21 + 16]) - softmax_max_0);
                            *(f32x4_anywhere *)&softmax_exp[16] = (f32x4){expf(v_14[0]), expf(v_14[1]), expf(v_14[2]), expf(v_14[3])};
                            softmax_exp[20] = expf((x[i_o * 21 + 20] - softmax_max_0));
                            softmax_sum_rf_0 = (f32x8){0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
                            for (int64_t softmax_sum_rf_rj_o = 0; softmax_sum_rf_rj_o < 2; softmax_sum_rf_rj_o++) {
                                softmax_sum_rf_0 = (softmax_sum_rf_0 + (*(f32x8_anywhere *)&softmax_exp[softmax_sum_rf_rj_o * 8]));
                            }
                            softmax_sum_rf_0 = (softmax_sum_rf_0 + (f32x8){softmax_exp[16], softmax_exp[17], softmax_exp[18], softmax_exp[19], softmax_exp[20], 0.0f, 0.0f, 0.0f});
                            softmax_sum_0 = 0.0f;
                            const float v_15 = (softmax_sum_rf_0[0] + softmax_sum_rf_0[4]);
                            const float v_16 = (softmax_sum_rf_0[1] + softmax_sum_rf_0[5]);
                            const float v_17 = (softmax_sum_rf_0[2] + softmax_sum_rf_0[6]);
                            const float v_18 = (softmax_sum_rf_0[3] + softmax_sum_rf_0[7]);
                            const float v_19 = (v_15 + v_17);
                            const float v_20 = (v_16 + v_18);
                            const float v_21 = (v_19 + v_20);
                            softmax_sum_0 = (softmax_sum_0 + v_21);
                            for (int64_t softmax_j_o = 0; softmax_j_o < 2; softmax_j_o++) {
                                *(f32x8_anywhere *)&softmax[i_o * 21 + softmax_j_o * 8] = ((*(f32x8_anywhere *)&softmax_exp[softmax_j_o * 8]) * (1.0f / softmax_sum_0));
                            }
                            *(f32x4_anywhere *)&softmax[i_o * 21 + 16] = ((*(f32x4_anywhere *)&softmax_exp[16]) * (1.0f / softmax_sum_0));
                            softmax[i_o * 21 + 20] = (softmax_exp[20] * (1.0f / softmax_sum_0));
                        }
                    }
                }
            }
        }
    }
}

void softmax(void **args, void *workspace, int threads);
void softmax(void **args, void *workspace, int threads) {
    softmax_main(args[0], args[1], workspace, (char *)workspace + 0, threads);
}
