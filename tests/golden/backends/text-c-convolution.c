#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x4_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f32x2 __attribute__((vector_size(8)));
typedef float f32x2_anywhere __attribute__((vector_size(8), aligned(4), may_alias));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef int32_t i32x2 __attribute__((vector_size(8)));

static inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


static void convolution_main(const float *restrict x, const float *restrict w_packed, float *restrict relu, char *workspace, char *slice, int threads) {
    (void)workspace;
    (void)slice;
    (void)threads;
    for (int64_t c_o = 0; c_o < 2; c_o++) {
        {
            float conv_pad[243] __attribute__((aligned(64), unused));
            for (int64_t conv_pad_c = 0; conv_pad_c < 3; conv_pad_c++) {
                *(f32x8_anywhere *)&conv_pad[conv_pad_c * 81] = (f32x8){0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
                conv_pad[conv_pad_c * 81 + 8] = 0.0f;
                for (int64_t conv_pad_h = 0; conv_pad_h < 7; conv_pad_h++) {
                    *(f32x8_anywhere *)&conv_pad[conv_pad_c * 81 + conv_pad_h * 9 + 9] = (f32x8){0.0f, x[conv_pad_c * 49 + conv_pad_h * 7], x[conv_pad_c * 49 + conv_pad_h * 7 + 1], x[conv_pad_c * 49 + conv_pad_h * 7 + 2], x[conv_pad_c * 49 + conv_pad_h * 7 + 3], x[conv_pad_c * 49 + conv_pad_h * 7 + 4], x[conv_pad_c * 49 + conv_pad_h * 7 + 5], x[conv_pad_c * 49 + conv_pad_h * 7 + 6]};
                    conv_pad[conv_pad_c * 81 + conv_pad_h * 9 + 17] = 0.0f;
                }
                *(f32x8_anywhere *)&conv_pad[conv_pad_c * 81 + 72] = (f32x8){0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
                conv_pad[conv_pad_c * 81 + 80] = 0.0f;
            }
            for (int64_t h_o = 0; h_o < 7; h_o++) {
                {
                    float conv[56] __attribute__((aligned(64), unused));
                    *(f32x4_anywhere *)&conv[0] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[4] = (f32x2){0.0f, 0.0f};
                    conv[6] = 0.0f;
                    *(f32x4_anywhere *)&conv[7] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[11] = (f32x2){0.0f, 0.0f};
                    conv[13] = 0.0f;
                    *(f32x4_anywhere *)&conv[14] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[18] = (f32x2){0.0f, 0.0f};
                    conv[20] = 0.0f;
                    *(f32x4_anywhere *)&conv[21] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[25] = (f32x2){0.0f, 0.0f};
                    conv[27] = 0.0f;
                    *(f32x4_anywhere *)&conv[28] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[32] = (f32x2){0.0f, 0.0f};
                    conv[34] = 0.0f;
                    *(f32x4_anywhere *)&conv[35] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[39] = (f32x2){0.0f, 0.0f};
                    conv[41] = 0.0f;
                    *(f32x4_anywhere *)&conv[42] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[46] = (f32x2){0.0f, 0.0f};
                    conv[48] = 0.0f;
                    *(f32x4_anywhere *)&conv[49] = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    *(f32x2_anywhere *)&conv[53] = (f32x2){0.0f, 0.0f};
                    conv[55] = 0.0f;
                    if ((-h_o <= -1) && (h_o < 6)) {
                        for (int64_t kh = 0; kh < 3; kh++) {
                            for (int64_t kw = 0; kw < 3; kw++) {
                                __builtin_prefetch(&w_packed[c_o * 216 + h_o * 16 + kh * 72 + kw * 24 + 216], 0, 2);
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24]));
                                conv[6] = (conv[6] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 1]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 1]));
                                conv[13] = (conv[13] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 1]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 2]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 2]));
                                conv[20] = (conv[20] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 2]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 3]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 3]));
                                conv[27] = (conv[27] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 3]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 4]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 4]));
                                conv[34] = (conv[34] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 4]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 5]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 5]));
                                conv[41] = (conv[41] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 5]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 6]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 6]));
                                conv[48] = (conv[48] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 6]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 7]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 4]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 7]));
                                conv[55] = (conv[55] + (conv_pad[h_o * 9 + kh * 9 + kw + 6] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 7]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 8]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 8]));
                                conv[6] = (conv[6] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 8]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 9]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 9]));
                                conv[13] = (conv[13] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 9]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 10]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 10]));
                                conv[20] = (conv[20] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 10]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 11]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 11]));
                                conv[27] = (conv[27] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 11]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 12]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 12]));
                                conv[34] = (conv[34] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 12]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 13]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 13]));
                                conv[41] = (conv[41] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 13]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 14]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 14]));
                                conv[48] = (conv[48] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 14]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 81]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 15]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 85]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 15]));
                                conv[55] = (conv[55] + (conv_pad[h_o * 9 + kh * 9 + kw + 87] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 15]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 16]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 16]));
                                conv[6] = (conv[6] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 16]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 17]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 17]));
                                conv[13] = (conv[13] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 17]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 18]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 18]));
                                conv[20] = (conv[20] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 18]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 19]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 19]));
                                conv[27] = (conv[27] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 19]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 20]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 20]));
                                conv[34] = (conv[34] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 20]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 21]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 21]));
                                conv[41] = (conv[41] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 21]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 22]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 22]));
                                conv[48] = (conv[48] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 22]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 162]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 23]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[h_o * 9 + kh * 9 + kw + 166]) * w_packed[c_o * 216 + kh * 72 + kw * 24 + 23]));
                                conv[55] = (conv[55] + (conv_pad[h_o * 9 + kh * 9 + kw + 168] * w_packed[c_o * 216 + kh * 72 + kw * 24 + 23]));
                            }
                        }
                    }
                    if (h_o < 1) {
                        for (int64_t kh_1 = 0; kh_1 < 2; kh_1++) {
                            for (int64_t kw_1 = 0; kw_1 < 3; kw_1++) {
                                __builtin_prefetch(&w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 288], 0, 2);
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 72]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 72]));
                                conv[6] = (conv[6] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 72]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 73]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 73]));
                                conv[13] = (conv[13] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 73]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 74]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 74]));
                                conv[20] = (conv[20] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 74]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 75]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 75]));
                                conv[27] = (conv[27] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 75]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 76]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 76]));
                                conv[34] = (conv[34] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 76]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 77]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 77]));
                                conv[41] = (conv[41] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 77]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 78]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 78]));
                                conv[48] = (conv[48] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 78]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 9]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 79]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 13]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 79]));
                                conv[55] = (conv[55] + (conv_pad[kh_1 * 9 + kw_1 + 15] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 79]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 80]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 80]));
                                conv[6] = (conv[6] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 80]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 81]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 81]));
                                conv[13] = (conv[13] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 81]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 82]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 82]));
                                conv[20] = (conv[20] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 82]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 83]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 83]));
                                conv[27] = (conv[27] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 83]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 84]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 84]));
                                conv[34] = (conv[34] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 84]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 85]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 85]));
                                conv[41] = (conv[41] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 85]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 86]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 86]));
                                conv[48] = (conv[48] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 86]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 90]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 87]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 94]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 87]));
                                conv[55] = (conv[55] + (conv_pad[kh_1 * 9 + kw_1 + 96] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 87]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 88]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 88]));
                                conv[6] = (conv[6] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 88]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 89]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 89]));
                                conv[13] = (conv[13] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 89]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 90]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 90]));
                                conv[20] = (conv[20] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 90]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 91]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 91]));
                                conv[27] = (conv[27] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 91]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 92]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 92]));
                                conv[34] = (conv[34] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 92]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 93]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 93]));
                                conv[41] = (conv[41] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 93]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 94]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 94]));
                                conv[48] = (conv[48] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 94]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 171]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 95]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_1 * 9 + kw_1 + 175]) * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 95]));
                                conv[55] = (conv[55] + (conv_pad[kh_1 * 9 + kw_1 + 177] * w_packed[c_o * 216 + kh_1 * 72 + kw_1 * 24 + 95]));
                            }
                        }
                    }
                    if ((-h_o <= -1) && (-h_o <= -6)) {
                        for (int64_t kh_2 = 0; kh_2 < 2; kh_2++) {
                            for (int64_t kw_2 = 0; kw_2 < 3; kw_2++) {
                                __builtin_prefetch(&w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 312], 0, 2);
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24]));
                                conv[6] = (conv[6] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 1]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 1]));
                                conv[13] = (conv[13] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 1]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 2]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 2]));
                                conv[20] = (conv[20] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 2]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 3]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 3]));
                                conv[27] = (conv[27] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 3]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 4]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 4]));
                                conv[34] = (conv[34] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 4]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 5]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 5]));
                                conv[41] = (conv[41] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 5]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 6]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 6]));
                                conv[48] = (conv[48] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 6]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 54]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 7]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 58]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 7]));
                                conv[55] = (conv[55] + (conv_pad[kh_2 * 9 + kw_2 + 60] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 7]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 8]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 8]));
                                conv[6] = (conv[6] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 8]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 9]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 9]));
                                conv[13] = (conv[13] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 9]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 10]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 10]));
                                conv[20] = (conv[20] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 10]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 11]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 11]));
                                conv[27] = (conv[27] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 11]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 12]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 12]));
                                conv[34] = (conv[34] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 12]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 13]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 13]));
                                conv[41] = (conv[41] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 13]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 14]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 14]));
                                conv[48] = (conv[48] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 14]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 135]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 15]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 139]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 15]));
                                conv[55] = (conv[55] + (conv_pad[kh_2 * 9 + kw_2 + 141] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 15]));
                                *(f32x4_anywhere *)&conv[0] = ((*(f32x4_anywhere *)&conv[0]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 16]));
                                *(f32x2_anywhere *)&conv[4] = ((*(f32x2_anywhere *)&conv[4]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 16]));
                                conv[6] = (conv[6] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 16]));
                                *(f32x4_anywhere *)&conv[7] = ((*(f32x4_anywhere *)&conv[7]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 17]));
                                *(f32x2_anywhere *)&conv[11] = ((*(f32x2_anywhere *)&conv[11]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 17]));
                                conv[13] = (conv[13] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 17]));
                                *(f32x4_anywhere *)&conv[14] = ((*(f32x4_anywhere *)&conv[14]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 18]));
                                *(f32x2_anywhere *)&conv[18] = ((*(f32x2_anywhere *)&conv[18]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 18]));
                                conv[20] = (conv[20] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 18]));
                                *(f32x4_anywhere *)&conv[21] = ((*(f32x4_anywhere *)&conv[21]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 19]));
                                *(f32x2_anywhere *)&conv[25] = ((*(f32x2_anywhere *)&conv[25]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 19]));
                                conv[27] = (conv[27] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 19]));
                                *(f32x4_anywhere *)&conv[28] = ((*(f32x4_anywhere *)&conv[28]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 20]));
                                *(f32x2_anywhere *)&conv[32] = ((*(f32x2_anywhere *)&conv[32]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 20]));
                                conv[34] = (conv[34] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 20]));
                                *(f32x4_anywhere *)&conv[35] = ((*(f32x4_anywhere *)&conv[35]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 21]));
                                *(f32x2_anywhere *)&conv[39] = ((*(f32x2_anywhere *)&conv[39]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 21]));
                                conv[41] = (conv[41] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 21]));
                                *(f32x4_anywhere *)&conv[42] = ((*(f32x4_anywhere *)&conv[42]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 22]));
                                *(f32x2_anywhere *)&conv[46] = ((*(f32x2_anywhere *)&conv[46]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 22]));
                                conv[48] = (conv[48] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 22]));
                                *(f32x4_anywhere *)&conv[49] = ((*(f32x4_anywhere *)&conv[49]) + ((*(f32x4_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 216]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 23]));
                                *(f32x2_anywhere *)&conv[53] = ((*(f32x2_anywhere *)&conv[53]) + ((*(f32x2_anywhere *)&conv_pad[kh_2 * 9 + kw_2 + 220]) * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 23]));
                                conv[55] = (conv[55] + (conv_pad[kh_2 * 9 + kw_2 + 222] * w_packed[c_o * 216 + kh_2 * 72 + kw_2 * 24 + 23]));
                            }
                        }
                    }
                    const f32x4 v = (*(f32x4_anywhere *)&conv[0]);
                    const f32x4 v_2 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_3 = (i32x4)((v > v_2) | (v != v));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7] = ((f32x4)(((i32x4)v & v_3) | ((i32x4)v_2 & ~v_3)));
                    const f32x2 v_4 = (*(f32x2_anywhere *)&conv[4]);
                    const f32x2 v_5 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_6 = (i32x2)((v_4 > v_5) | (v_4 != v_4));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 4] = ((f32x2)(((i32x2)v_4 & v_6) | ((i32x2)v_5 & ~v_6)));
                    relu[c_o * 392 + h_o * 7 + 6] = max_f32(conv[6], 0.0f);
                    const f32x4 v_7 = (*(f32x4_anywhere *)&conv[7]);
                    const f32x4 v_8 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_9 = (i32x4)((v_7 > v_8) | (v_7 != v_7));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 49] = ((f32x4)(((i32x4)v_7 & v_9) | ((i32x4)v_8 & ~v_9)));
                    const f32x2 v_10 = (*(f32x2_anywhere *)&conv[11]);
                    const f32x2 v_11 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_12 = (i32x2)((v_10 > v_11) | (v_10 != v_10));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 53] = ((f32x2)(((i32x2)v_10 & v_12) | ((i32x2)v_11 & ~v_12)));
                    relu[c_o * 392 + h_o * 7 + 55] = max_f32(conv[13], 0.0f);
                    const f32x4 v_13 = (*(f32x4_anywhere *)&conv[14]);
                    const f32x4 v_14 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_15 = (i32x4)((v_13 > v_14) | (v_13 != v_13));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 98] = ((f32x4)(((i32x4)v_13 & v_15) | ((i32x4)v_14 & ~v_15)));
                    const f32x2 v_16 = (*(f32x2_anywhere *)&conv[18]);
                    const f32x2 v_17 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_18 = (i32x2)((v_16 > v_17) | (v_16 != v_16));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 102] = ((f32x2)(((i32x2)v_16 & v_18) | ((i32x2)v_17 & ~v_18)));
                    relu[c_o * 392 + h_o * 7 + 104] = max_f32(conv[20], 0.0f);
                    const f32x4 v_19 = (*(f32x4_anywhere *)&conv[21]);
                    const f32x4 v_20 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_21 = (i32x4)((v_19 > v_20) | (v_19 != v_19));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 147] = ((f32x4)(((i32x4)v_19 & v_21) | ((i32x4)v_20 & ~v_21)));
                    const f32x2 v_22 = (*(f32x2_anywhere *)&conv[25]);
                    const f32x2 v_23 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_24 = (i32x2)((v_22 > v_23) | (v_22 != v_22));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 151] = ((f32x2)(((i32x2)v_22 & v_24) | ((i32x2)v_23 & ~v_24)));
                    relu[c_o * 392 + h_o * 7 + 153] = max_f32(conv[27], 0.0f);
                    const f32x4 v_25 = (*(f32x4_anywhere *)&conv[28]);
                    const f32x4 v_26 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_27 = (i32x4)((v_25 > v_26) | (v_25 != v_25));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 196] = ((f32x4)(((i32x4)v_25 & v_27) | ((i32x4)v_26 & ~v_27)));
                    const f32x2 v_28 = (*(f32x2_anywhere *)&conv[32]);
                    const f32x2 v_29 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_30 = (i32x2)((v_28 > v_29) | (v_28 != v_28));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 200] = ((f32x2)(((i32x2)v_28 & v_30) | ((i32x2)v_29 & ~v_30)));
                    relu[c_o * 392 + h_o * 7 + 202] = max_f32(conv[34], 0.0f);
                    const f32x4 v_31 = (*(f32x4_anywhere *)&conv[35]);
                    const f32x4 v_32 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_33 = (i32x4)((v_31 > v_32) | (v_31 != v_31));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 245] = ((f32x4)(((i32x4)v_31 & v_33) | ((i32x4)v_32 & ~v_33)));
                    const f32x2 v_34 = (*(f32x2_anywhere *)&conv[39]);
                    const f32x2 v_35 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_36 = (i32x2)((v_34 > v_35) | (v_34 != v_34));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 249] = ((f32x2)(((i32x2)v_34 & v_36) | ((i32x2)v_35 & ~v_36)));
                    relu[c_o * 392 + h_o * 7 + 251] = max_f32(conv[41], 0.0f);
                    const f32x4 v_37 = (*(f32x4_anywhere *)&conv[42]);
                    const f32x4 v_38 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_39 = (i32x4)((v_37 > v_38) | (v_37 != v_37));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 294] = ((f32x4)(((i32x4)v_37 & v_39) | ((i32x4)v_38 & ~v_39)));
                    const f32x2 v_40 = (*(f32x2_anywhere *)&conv[46]);
                    const f32x2 v_41 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_42 = (i32x2)((v_40 > v_41) | (v_40 != v_40));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 298] = ((f32x2)(((i32x2)v_40 & v_42) | ((i32x2)v_41 & ~v_42)));
                    relu[c_o * 392 + h_o * 7 + 300] = max_f32(conv[48], 0.0f);
                    const f32x4 v_43 = (*(f32x4_anywhere *)&conv[49]);
                    const f32x4 v_44 = (f32x4){0.0f, 0.0f, 0.0f, 0.0f};
                    const i32x4 v_45 = (i32x4)((v_43 > v_44) | (v_43 != v_43));
                    *(f32x4_anywhere *)&relu[c_o * 392 + h_o * 7 + 343] = ((f32x4)(((i32x4)v_43 & v_45) | ((i32x4)v_44 & ~v_45)));
                    const f32x2 v_46 = (*(f32x2_anywhere *)&conv[53]);
                    const f32x2 v_47 = (f32x2){0.0f, 0.0f};
                    const i32x2 v_48 = (i32x2)((v_46 > v_47) | (v_46 != v_46));
                    *(f32x2_anywhere *)&relu[c_o * 392 + h_o * 7 + 347] = ((f32x2)(((i32x2)v_46 & v_48) | ((i32x2)v_47 & ~v_48)));
                    relu[c_o * 392 + h_o * 7 + 349] = max_f32(conv[55], 0.0f);
                }
            }
        }
    }
}

void convolution(void **args, void *workspace, int threads);
void convolution(void **args, void *workspace, int threads) {
    convolution_main(args[0], args[1], args[2], workspace, (char *)workspace + 0, threads);
}
