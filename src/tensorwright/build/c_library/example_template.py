"""Templates of a library's example program: one for fixed shapes, one for named sizes."""

from __future__ import annotations

from string import Template

_TOOLS = """\
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
    fprintf(stderr, "%s: not a file of %zu bytes\\n", path, count_bytes);
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

"""

EXAMPLE = Template(
    """\
/* example [THREADS [INPUTS]]: run the network, and print its outputs and its time.

   INPUTS is a file with the inputs one after the other; without it example_inputs.bin is read, and
   the outputs are compared with example_outputs.bin, which tensorwright computed. */
"""
    + _TOOLS
    + """\
int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : $threads;
    const char *slash = strrchr(arguments[0], '/');
    int length = slash ? (int)(slash - arguments[0] + 1) : 0;
    snprintf(folder, sizeof folder, "%.*s", length, arguments[0]);
    char path[5120];
    snprintf(path, sizeof path, "%s$name.weights", folder);

    size_t given_bytes = 0, wanted_bytes = 0;
    for (int n = 0; n < ${NAME}_INPUTS; n++) given_bytes += ${name}_inputs[n].size_bytes;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) wanted_bytes += ${name}_outputs[n].size_bytes;
    char *given = read_file(count > 2 ? arguments[2] : "example_inputs.bin", given_bytes);
    char *expected = NULL;
    if (count <= 2 && $is_checked) expected = read_file("example_outputs.bin", wanted_bytes);
    char *results = malloc(wanted_bytes + 1);
    if (!results) return 1;

    const void *inputs[${NAME}_INPUTS + 1];
    void *outputs[${NAME}_OUTPUTS + 1];
    size_t offset = 0;
    for (int n = 0; n < ${NAME}_INPUTS; n++, offset += ${name}_inputs[n - 1].size_bytes)
        inputs[n] = given + offset;
    offset = 0;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++, offset += ${name}_outputs[n - 1].size_bytes)
        outputs[n] = results + offset;

    ${name}_model *model;
    int error = ${name}_load(&model, path);
    double times[RUNS];
    for (int run = 0; !error && run < RUNS; run++) {
        double start = now();
        error = ${name}_run(model, inputs, outputs, threads);
        times[run] = now() - start;
    }
    if (error) {
        fprintf(stderr, "%s: %s\\n", path, ${name}_message(error));
        return 1;
    }
    int all_near = 1;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        const char *wanted = expected ? expected + ((char *)outputs[n] - results) : NULL;
        all_near &= report(&${name}_outputs[n], outputs[n], wanted);
    }
    qsort(times, RUNS, sizeof *times, by_size);
    double median_ms = times[RUNS / 2] * 1e3;
    printf("%.3f ms a run, the median of %d on %d threads\\n", median_ms, RUNS, threads);
    ${name}_free(model);
    free(given);
    free(expected);
    free(results);
    return all_near ? 0 : 1;
}
"""
)

OPEN_EXAMPLE = Template(
    """\
/* example [THREADS [INPUTS $size_words]]: run the network, and print its outputs and its time.

   INPUTS is a file with the inputs one after the other, for the sizes behind it. Without it the
   network runs at all sizes of the table below: example_inputs_N.bin has the inputs for line N, and
   the outputs are compared with example_outputs_N.bin, which tensorwright computed. */
"""
    + _TOOLS
    + """\
/* $size_words */
static const ${name}_sizes examples[] = {
$size_rows};

static void check(int error) {
    if (!error) return;
    fprintf(stderr, "%s: %s\\n", "$name", ${name}_message(error));
    exit(1);
}

/* Run at some sizes; 0 if an output is too far from the expected one. */
static int run_at(${name}_model *model, const ${name}_sizes *sizes, int threads,
                  const char *inputs_name, const char *outputs_name) {
    ${name}_tensor tensors[${NAME}_OUTPUTS + 1];
    size_t output_bytes[${NAME}_OUTPUTS + 1];
    size_t given_bytes = 0, wanted_bytes = 0, offset = 0;
    for (int n = 0; n < ${NAME}_INPUTS; n++) given_bytes += ${name}_input_bytes(n, sizes);
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        check(${name}_output_at(n, sizes, &tensors[n]));
        output_bytes[n] = tensors[n].size_bytes;
        wanted_bytes += output_bytes[n];
    }
    char *given = read_file(inputs_name, given_bytes);
    char *expected = outputs_name ? read_file(outputs_name, wanted_bytes) : NULL;
    char *results = malloc(wanted_bytes + 1);
    if (!results) check(${NAME}_OUT_OF_MEMORY);

    const void *inputs[${NAME}_INPUTS + 1];
    void *outputs[${NAME}_OUTPUTS + 1];
    for (int n = 0; n < ${NAME}_INPUTS; n++) {
        inputs[n] = given + offset;
        offset += ${name}_input_bytes(n, sizes);
    }
    offset = 0;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        outputs[n] = results + offset;
        offset += output_bytes[n];
    }

    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        check(${name}_run(model, sizes, inputs, outputs, output_bytes, threads));
        times[run] = now() - start;
    }
    printf("$size_format:\\n", $size_fields);
    int all_near = 1;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        const char *wanted = expected ? expected + ((char *)outputs[n] - results) : NULL;
        all_near &= report(&tensors[n], outputs[n], wanted);
    }
    qsort(times, RUNS, sizeof *times, by_size);
    double median_ms = times[RUNS / 2] * 1e3;
    printf("%.3f ms a run, the median of %d on %d threads\\n", median_ms, RUNS, threads);
    free(given);
    free(expected);
    free(results);
    return all_near;
}

int main(int count, char **arguments) {
    if (count > 2 && count != 3 + $size_count) {
        fputs("example [THREADS [INPUTS $size_words]]\\n", stderr);
        return 2;
    }
    int threads = count > 1 ? atoi(arguments[1]) : $threads;
    const char *slash = strrchr(arguments[0], '/');
    int length = slash ? (int)(slash - arguments[0] + 1) : 0;
    snprintf(folder, sizeof folder, "%.*s", length, arguments[0]);
    char path[5120];
    snprintf(path, sizeof path, "%s$name.weights", folder);

    ${name}_model *model;
    check(${name}_load(&model, path));
    int all_near = 1;
    if (count > 2) {
        const ${name}_sizes sizes = {$size_numbers};
        run_at(model, &sizes, threads, arguments[2], NULL);
    }
    for (int n = 0; count <= 2 && n < (int)(sizeof examples / sizeof *examples); n++) {
        char inputs_name[64], outputs_name[64];
        snprintf(inputs_name, sizeof inputs_name, "example_inputs_%d.bin", n);
        snprintf(outputs_name, sizeof outputs_name, "example_outputs_%d.bin", n);
        const char *expected_name = $is_checked ? outputs_name : NULL;
        all_near &= run_at(model, &examples[n], threads, inputs_name, expected_name);
    }
    ${name}_free(model);
    return all_near ? 0 : 1;
}
"""
)
