#include "$name.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 11 };

static char folder[4096];

static char *read_file(const char *name, size_t count_bytes) {
    char path[5120];
    snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : folder, name);
    char *content = malloc(count_bytes + 1);
    FILE *file = fopen(path, "rb");
    size_t read_bytes = file && content ? fread(content, 1, count_bytes + 1, file) : 0;
    if (file) fclose(file);
    if (read_bytes == count_bytes) return content;
    fprintf(stderr, "%s: not a file of %zu bytes\n", path, count_bytes);
    exit(1);
}

static double half(uint16_t bits, int exponent_bits) {
    int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    double mantissa = bits & ((1 << mantissa_bits) - 1), sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return mantissa > 0 ? NAN : sign * INFINITY;
    if (exponent) mantissa += 1 << mantissa_bits;
    return sign * ldexp(mantissa, (exponent ? exponent : 1) - bias - mantissa_bits);
}

#define READ(type) { type number; memcpy(&number, at, sizeof number); return (double)number; }
static double number(const char *dtype, const char *at) {
    if (!strcmp(dtype, "f32")) READ(float)
    if (!strcmp(dtype, "f64")) READ(double)
    if (!strcmp(dtype, "i8")) READ(int8_t)
    if (!strcmp(dtype, "i16")) READ(int16_t)
    if (!strcmp(dtype, "i32")) READ(int32_t)
    if (!strcmp(dtype, "i64")) READ(int64_t)
    if (!strcmp(dtype, "u16")) READ(uint16_t)
    if (!strcmp(dtype, "u32")) READ(uint32_t)
    if (!strcmp(dtype, "u64")) READ(uint64_t)
    if (!strcmp(dtype, "f16") || !strcmp(dtype, "bf16")) {
        uint16_t bits;
        memcpy(&bits, at, 2);
        return half(bits, dtype[0] == 'f' ? 5 : 8);
    }
    READ(uint8_t)
}

static size_t elements(const ${name}_tensor *tensor) {
    size_t count = 1;
    for (int axis = 0; axis < tensor->rank; axis++) count *= (size_t)tensor->shape[axis];
    return count;
}

/* Print an output's sum and its difference from the expected one; 0 if that is too large. */
static int report(const ${name}_tensor *tensor, const char *computed, const char *expected) {
    size_t count = elements(tensor), size = count ? tensor->size_bytes / count : 0;
    double sum = 0, largest = 0, furthest = 0;
    for (size_t n = 0; n < count; n++) {
        double value = number(tensor->dtype, computed + n * size);
        sum += value;
        if (!expected) continue;
        double wanted = number(tensor->dtype, expected + n * size);
        if (isnan(value) != isnan(wanted)) furthest = INFINITY;
        else if (value != wanted && !isnan(value)) furthest = fmax(furthest, fabs(value - wanted));
        if (!isnan(wanted)) largest = fmax(largest, fabs(wanted));
    }
    printf("%s: sum %.9g", tensor->name, sum);
    if (!expected) return puts("") >= 0;
    double limit = strstr(tensor->dtype, "f16") ? 1e-2 : 1e-5;
    double relative = furthest == 0 ? 0 : furthest / (largest > 0 ? largest : 1);
    int is_near = relative <= limit;
    printf(", largest difference / largest value %.3g: ", relative);
    puts(is_near ? "equal" : "NOT EQUAL");
    return is_near;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
