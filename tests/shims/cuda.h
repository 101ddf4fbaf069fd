// CUDA C++ on the processor: each thread of a block is a fiber, and __syncthreads() lets the next
// one run. Threads of a block run one after the other, so without a barrier results are wrong.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
};
static dim3 threadIdx, blockIdx;
alignas(16) static char shim_shared[1 << 18];

#define VECTORS(type, name)                                                            \
    struct __align__(sizeof(type) * 2) name##2 { type x, y; };                         \
    struct __align__(sizeof(type) * 4 > 16 ? 16 : sizeof(type) * 4) name##4 { type x, y, z, w; }; \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
VECTORS(float, float)
VECTORS(double, double)
VECTORS(signed char, char)
VECTORS(unsigned char, uchar)
VECTORS(short, short)
VECTORS(unsigned short, ushort)
VECTORS(int, int)
VECTORS(unsigned, uint)
VECTORS(long long, longlong)
VECTORS(unsigned long long, ulonglong)

template <typename To, typename From> static inline To shim_bits(From number) {
    To bits;
    memcpy(&bits, &number, sizeof(To));
    return bits;
}
static inline float __int_as_float(int bits) { return shim_bits<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return shim_bits<float>(bits); }
static inline unsigned __float_as_uint(float number) { return shim_bits<unsigned>(number); }

// fibers

static const size_t SHIM_STACK = 64 << 10;
static ucontext_t shim_scheduler, *shim_current;
static void (*shim_kernel)(void **);
static void **shim_arguments;
static bool *shim_is_done, *shim_done_now;

static inline void __syncthreads() { swapcontext(shim_current, &shim_scheduler); }

static void shim_thread() {
    shim_kernel(shim_arguments);
    *shim_done_now = true;
}

static void shim_launch(void (*kernel)(void **), void **arguments, const unsigned *grid,
                        const unsigned *block) {
    const unsigned threads = block[0] * block[1] * block[2];
    ucontext_t *contexts = (ucontext_t *)calloc(threads, sizeof(ucontext_t));
    char *stacks = (char *)malloc(threads * SHIM_STACK);
    bool *is_done = (bool *)calloc(threads, 1);
    shim_kernel = kernel, shim_arguments = arguments, shim_is_done = is_done;
    for (unsigned number = 0; number < grid[0] * grid[1] * grid[2]; number++) {
        blockIdx = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
        memset(is_done, 0, threads);
        for (unsigned thread = 0; thread < threads; thread++) {
            getcontext(&contexts[thread]);
            contexts[thread].uc_stack.ss_sp = stacks + thread * SHIM_STACK;
            contexts[thread].uc_stack.ss_size = SHIM_STACK;
            contexts[thread].uc_link = &shim_scheduler;
            makecontext(&contexts[thread], shim_thread, 0);
        }
        for (unsigned running = threads; running;) {
            running = 0;
            for (unsigned thread = 0; thread < threads; thread++) {
                if (is_done[thread]) continue;
                threadIdx = {thread % block[0], thread / block[0] % block[1],
                             thread / block[0] / block[1]};
                shim_current = &contexts[thread], shim_done_now = &is_done[thread];
                swapcontext(&shim_scheduler, &contexts[thread]);
                running += !is_done[thread];
            }
        }
    }
    free(contexts), free(stacks), free(is_done);
}
