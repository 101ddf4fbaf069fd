// CUDA C++ on the processor: each thread of a block is a fiber, and __syncthreads() lets the next
// one run. Threads of a block run one after the other, so without a barrier results are wrong.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <vector>

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

enum shim_state : char { RUNS, WAITS, IS_DONE };
static shim_state *shim_now;

static inline void shim_yield() { swapcontext(shim_current, &shim_scheduler); }
static inline void __syncthreads() {
    *shim_now = WAITS;
    shim_yield();
}

// A value of another thread: written, then read when all beside have written theirs.
static char shim_values[1024][8];
static unsigned shim_number;
template <typename T> static T exchange(T value, int distance, int lanes) {
    const unsigned number = shim_number;
    T other;
    memcpy(shim_values[number], &value, sizeof(T));
    shim_yield();
    memcpy(&other, shim_values[number ^ distance], sizeof(T));
    shim_yield();
    return other;
}

// Copies are done when a thread waits for them, not before.
struct shim_copy {
    void *to;
    const void *from;
    int bytes, batch;
};
static std::vector<std::vector<shim_copy>> shim_copies;
static std::vector<int> shim_batches;
template <int bytes> static void start_copy(void *to, const void *from) {
    shim_copies[shim_number].push_back({to, from, bytes, shim_batches[shim_number]});
}
static void commit_copies() { shim_batches[shim_number]++; }
template <int batches> static void wait_copies() {
    std::vector<shim_copy> left;
    for (const shim_copy &each : shim_copies[shim_number])
        if (each.batch < shim_batches[shim_number] - batches)
            memcpy(each.to, each.from, each.bytes);
        else
            left.push_back(each);
    shim_copies[shim_number] = left;
}

static void shim_thread() {
    shim_kernel(shim_arguments);
    *shim_now = IS_DONE;
}

static void shim_launch(void (*kernel)(void **), void **arguments, const unsigned *grid,
                        const unsigned *block) {
    const unsigned threads = block[0] * block[1] * block[2];
    ucontext_t *contexts = (ucontext_t *)calloc(threads, sizeof(ucontext_t));
    char *stacks = (char *)malloc(threads * SHIM_STACK);
    std::vector<shim_state> states(threads);
    shim_kernel = kernel, shim_arguments = arguments;
    for (unsigned number = 0; number < grid[0] * grid[1] * grid[2]; number++) {
        blockIdx = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
        shim_copies.assign(threads, {}), shim_batches.assign(threads, 0);
        states.assign(threads, RUNS);
        for (unsigned thread = 0; thread < threads; thread++) {
            getcontext(&contexts[thread]);
            contexts[thread].uc_stack.ss_sp = stacks + thread * SHIM_STACK;
            contexts[thread].uc_stack.ss_size = SHIM_STACK;
            contexts[thread].uc_link = &shim_scheduler;
            makecontext(&contexts[thread], shim_thread, 0);
        }
        for (bool is_running = true; is_running;) {
            is_running = false;
            for (unsigned thread = 0; thread < threads; thread++) {
                if (states[thread] != RUNS) continue;
                shim_number = thread, shim_now = &states[thread];
                threadIdx = {thread % block[0], thread / block[0] % block[1],
                             thread / block[0] / block[1]};
                shim_current = &contexts[thread];
                swapcontext(&shim_scheduler, &contexts[thread]);
                is_running = true;
            }
            if (is_running) continue;
            for (shim_state &state : states) {  // all that are left have come to the barrier
                if (state != WAITS) continue;
                state = RUNS;
                is_running = true;
            }
        }
    }
    free(contexts), free(stacks);
}
