#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static inline float max_f32(float a, float b) {
    return a > b || a != a ? a : b;
}


static void pooling_main(const float *restrict x, float *restrict max_pool, char *workspace, char *slice, int threads) {
    (void)workspace;
    (void)slice;
    (void)threads;
    for (int64_t c = 0; c < 16; c++) {
        for (int64_t h = 0; h < 2; h++) {
            for (int64_t w_i = 0; w_i < 2; w_i++) {
                max_pool[c * 4 + h * 2 + w_i] = (-INFINITY);
                {
                    float max_pool_kept_0 __attribute__((unused)) = 0;
                    max_pool_kept_0 = max_pool[c * 4 + h * 2 + w_i];
                    for (int64_t kh = 0; kh < 3; kh++) {
                        for (int64_t kw = 0; kw < 3; kw++) {
                            max_pool_kept_0 = max_f32(max_pool_kept_0, x[c * 25 + h * 10 + kh * 5 + kw + w_i * 2]);
                        }
                    }
                    max_pool[c * 4 + h * 2 + w_i] = max_pool_kept_0;
                }
            }
        }
    }
}

void pooling(void **args, void *workspace, int threads);
void pooling(void **args, void *workspace, int threads) {
    pooling_main(args[0], args[1], workspace, (char *)workspace + 0, threads);
}
