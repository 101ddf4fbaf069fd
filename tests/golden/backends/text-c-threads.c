#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef float f32x8_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32)));

static inline float sigmoid_f32(float a) {
    return 1 / (1 + expf(-a));
}

#ifdef _OPENMP
/* The float state of a thread: rounding; whether denormal numbers count as 0. */
#if defined(__x86_64__)
static inline uint64_t float_state(void) { return __builtin_ia32_stmxcsr(); }
static inline void set_float_state(uint64_t state) { __builtin_ia32_ldmxcsr((unsigned)state); }
#elif defined(__aarch64__)
static inline uint64_t float_state(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static inline void set_float_state(uint64_t state) {
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
}
#else
static inline uint64_t float_state(void) { return 0; }
static inline void set_float_state(uint64_t state) { (void)state; }
#endif
#endif


__attribute__((unused)) static inline int64_t t_threads_slice_bytes(void) { return 0; }

static void t_threads_parallel_0(float *restrict mul, const float *restrict x, char *workspace, char *slice, int64_t first, int64_t stop) {
    (void)workspace;
    (void)slice;
    for (int64_t i = first; i < stop; i++) {
        for (int64_t j_o = 0; j_o < 125; j_o++) {
            const f32x8 v = (*(const f32x8_anywhere *)&x[i * 1000 + j_o * 8]);
            *(f32x8_anywhere *)&mul[i * 1000 + j_o * 8] = ((*(const f32x8_anywhere *)&x[i * 1000 + j_o * 8]) * (f32x8){sigmoid_f32(v[0]), sigmoid_f32(v[1]), sigmoid_f32(v[2]), sigmoid_f32(v[3]), sigmoid_f32(v[4]), sigmoid_f32(v[5]), sigmoid_f32(v[6]), sigmoid_f32(v[7])});
        }
    }
}

static void t_threads_main(const float *restrict x, float *restrict mul, char *workspace, char *slice, int threads) {
    (void)threads;
#ifdef _OPENMP
    if (threads > 1) {
        const uint64_t floats = float_state();
#pragma omp parallel num_threads(threads < 500 ? threads : 500)
        {
            const int64_t id = omp_get_thread_num();
            const int64_t team = omp_get_num_threads();
            const uint64_t own = float_state();
            set_float_state(floats);
            t_threads_parallel_0(mul, x, workspace, slice + id * t_threads_slice_bytes(), 500 * id / team, 500 * (id + 1) / team);
            set_float_state(own);
        }
    }
    else
#endif
    t_threads_parallel_0(mul, x, workspace, slice, 0, 500);
}

void t_threads(void **args, void *workspace, int threads);
void t_threads(void **args, void *workspace, int threads) {
    t_threads_main(args[0], args[1], workspace, (char *)workspace + 0, threads);
}
