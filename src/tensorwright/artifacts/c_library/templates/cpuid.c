#if defined(__x86_64__)
#include <cpuid.h>

static int has(unsigned leaf, unsigned part, int number, int bit) {
    unsigned registers[4];
    return __get_cpuid_count(leaf, part, registers, registers + 1, registers + 2, registers + 3)
        && registers[number] >> bit & 1;
}
#endif

