"""Templates of the C files of a library, which are the same for every network.

`library.py` gives the texts for the names in them; $name and $NAME are the name of the network.
`open_sizes.py` gives the texts about named sizes, which are empty if the network has none.

Templates of a library's example program: one for fixed shapes, one for named sizes.
"""

from __future__ import annotations

from string import Template

HEADER = Template("""/* $title, compiled by tensorwright for $target.

   int main(void) {
       ${name}_model *model;
$example_sizes       int error = ${name}_load(&model, "$name.weights");
       if (!error) error = ${name}_run(model, ${sizes_given}inputs, outputs, ${room_given}1);
       if (error) puts(${name}_message(error));
       else ${name}_free(model);
   }

   To build the library in this folder, and to link a program.c that includes this header:

       make lib$name.a
       cc -o program program.c lib$name.a -fopenmp -lm

   `make lib$name.so` builds a shared library, for programs in any language.

   Link a C++ program in the same way, with c++. -fopenmp is for the threads: if the compiler has no
   OpenMP, make builds a library for one thread; then leave -fopenmp out. The program reads
   $name.weights.

$tensors
*/
#ifndef ${NAME}_H
#define ${NAME}_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${NAME}_INPUTS $inputs
#define ${NAME}_OUTPUTS $outputs

/* What the functions return. */
enum {
    ${NAME}_OK = 0,
    ${NAME}_BAD_ARGUMENT = 1,
    ${NAME}_OUT_OF_MEMORY = 2,
    ${NAME}_NO_FILE = 3,
    ${NAME}_BAD_FILE = 4,
    ${NAME}_OTHER_PROCESSOR = 5$comma /* it lacks instructions that the kernels were compiled for */
$size_codes};

/* A tensor at the border: dense, row-major. dtype is f32, f64, i8 ... u64, bool, f16 or bf16. */
${shape_note}typedef struct {
    const char *name;
    const char *dtype;
    int rank;
    long long shape[8];
    size_t size_bytes;
} ${name}_tensor;

extern const ${name}_tensor ${name}_inputs[];
extern const ${name}_tensor ${name}_outputs[];

${size_declarations}typedef struct ${name}_model ${name}_model;

/* Read the weights, about $megabytes MB, and reserve memory; *model is NULL after an error. A
   processor that cannot run the kernels gives ${NAME}_OTHER_PROCESSOR, before any of them runs. */
int ${name}_load(${name}_model **model, const char *weights_path);

/* Run once. inputs and outputs point to ${NAME}_INPUTS and ${NAME}_OUTPUTS arrays in the order
   above, each aligned as its elements need; no output may be an input. threads has an effect if the
   library was built with OpenMP. Concurrent calls need a separate model each.$notes */
int ${name}_run($run_parameters);

/* Free everything; NULL is allowed. */
void ${name}_free(${name}_model *model);

/* The meaning of a code. */
const char *${name}_message(int code);

#ifdef __cplusplus
}
#endif

#endif
""")

LIBRARY = Template("""#include "$name.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file: "TWWEIGHT", the number 1 in 4 bytes as this machine orders them, 4 bytes of padding,
   the size of the data after the first 64 bytes, and the sum of its 8-byte words. */
enum { HEAD_BYTES = 64 };
static const uint64_t WEIGHTS_BYTES = $weights_bytes;
static const uint64_t ARENA_BYTES = $arena_bytes;
static const uint64_t SHARED_BYTES = $shared_bytes;
static const uint64_t THREAD_BYTES = $thread_bytes;

struct ${name}_model {
    char *weights;
    char *arena;
    char *workspace;
    uint64_t workspace_bytes;
};

$descriptions$size_functions
$declarations
/* This file runs on every processor of its kind, and checks the features before a kernel runs. */
extern const unsigned ${name}_needs;

${float_state}
${cpuid}static int is_missing(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
$checks#endif
    return 0;
}

static char *reserve(uint64_t count_bytes) {
    return aligned_alloc(64, (size_t)((count_bytes + 64) / 64 * 64));
}

static int read_weights(FILE *file, char *weights) {
    unsigned char head[HEAD_BYTES];
    uint64_t size, sum, total = 0, word;
    uint32_t one;
    if (fread(head, 1, HEAD_BYTES, file) != HEAD_BYTES) return 0;
    memcpy(&one, head + 8, 4);
    memcpy(&size, head + 16, 8);
    memcpy(&sum, head + 24, 8);
    if (memcmp(head, "TWWEIGHT", 8) || one != 1 || size != WEIGHTS_BYTES) return 0;
    if (fread(weights, 1, (size_t)size, file) != size || fgetc(file) != EOF) return 0;
    for (uint64_t offset = 0; offset < size; offset += 8) {
        memcpy(&word, weights + offset, 8);
        total += word;
    }
    return total == sum;
}

int ${name}_load(${name}_model **model, const char *weights_path) {
    if (!model || !weights_path) return ${NAME}_BAD_ARGUMENT;
    *model = NULL;
    if (is_missing()) return ${NAME}_OTHER_PROCESSOR;
    ${name}_model *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return ${NAME}_OUT_OF_MEMORY;
    loaded->weights = reserve(WEIGHTS_BYTES);
    loaded->arena = reserve(ARENA_BYTES);
    int error = loaded->weights && loaded->arena ? ${NAME}_OK : ${NAME}_OUT_OF_MEMORY;
    FILE *file = error ? NULL : fopen(weights_path, "rb");
    if (!error && !file) error = ${NAME}_NO_FILE;
    if (!error && !read_weights(file, loaded->weights)) error = ${NAME}_BAD_FILE;
    if (file) fclose(file);
    if (error) ${name}_free(loaded);
    else *model = loaded;
    return error;
}

void ${name}_free(${name}_model *model) {
    if (!model) return;
    free(model->weights);
    free(model->arena);
    free(model->workspace);
    free(model);
}

const char *${name}_message(int code) {
    switch (code) {
    case ${NAME}_OK: return "no error";
    case ${NAME}_BAD_ARGUMENT: return "an argument is missing, or threads is below 1";
    case ${NAME}_OUT_OF_MEMORY: return "out of memory";
    case ${NAME}_NO_FILE: return "cannot open the file of weights";
    case ${NAME}_BAD_FILE: return "the file of weights is damaged, or belongs to another model";
    case ${NAME}_OTHER_PROCESSOR: return "this processor lacks some of $features";
$size_messages    default: return "no such code";
    }
}

static int grow_workspace(${name}_model *model, int threads) {
    uint64_t wanted = SHARED_BYTES + (uint64_t)threads * THREAD_BYTES;
    if (model->workspace && wanted <= model->workspace_bytes) return 1;
    free(model->workspace);
    model->workspace = reserve(wanted);
    model->workspace_bytes = wanted;
    return model->workspace != NULL;
}

int ${name}_run($run_parameters) {
    if (!model || ${size_arguments}!inputs || !outputs || threads < 1) return ${NAME}_BAD_ARGUMENT;
    for (int n = 0; n < ${NAME}_INPUTS; n++)
        if (!inputs[n]) return ${NAME}_BAD_ARGUMENT;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++)
        if (!outputs[n]) return ${NAME}_BAD_ARGUMENT;
$size_checks    if (!grow_workspace(model, threads)) return ${NAME}_OUT_OF_MEMORY;
    char *const weights = model->weights, *const arena = model->arena;
    (void)weights;
    (void)arena;
    const uint64_t floats = float_state();
    set_float_state(floats | FLUSHED);
$steps    set_float_state(floats);
    return ${NAME}_OK;
}
""")

CPUID = """\
#if defined(__x86_64__)
#include <cpuid.h>

static int has(unsigned leaf, unsigned part, int number, int bit) {
    unsigned registers[4];
    return __get_cpuid_count(leaf, part, registers, registers + 1, registers + 2, registers + 3)
        && registers[number] >> bit & 1;
}
#endif

"""

NEEDS = Template("""/* The features that the kernels need, as bits: this file has no code. */
extern const unsigned ${name}_needs;
const unsigned ${name}_needs = 0
$bits    ;
""")

MAKEFILE = Template("""\
# make: lib$name.a and the program example. make CC=clang; make ARCH=... for another machine.
# make lib$name.so: a shared library.
CC ?= cc
ARCH ?= $machine
WARNINGS ?= -Wall -Wextra -Wno-psabi
HAS_OPENMP = $$(CC) -fopenmp -include omp.h -x c -c /dev/null -o /dev/null 2>/dev/null
OPENMP := $$(shell $$(HAS_OPENMP) && echo -fopenmp)
CFLAGS ?= -O3
FLAGS = -fPIC $flags $$(CFLAGS) $$(WARNINGS) $$(OPENMP)
OBJECTS = $name.o $objects

example: example.o lib$name.a
	$$(CC) $$(OPENMP) -o $$@ example.o lib$name.a -lm

lib$name.a: $$(OBJECTS)
	rm -f $$@
	$$(AR) rcs $$@ $$(OBJECTS)

lib$name.so: $$(OBJECTS)
	$$(CC) -shared $$(OPENMP) -o $$@ $$(OBJECTS) -lm

# only kernels may use the features of ARCH: the rest runs everywhere, and checks for them
kernels/%.o: kernels/%.c
	$$(CC) $$(FLAGS) $$(ARCH) -c -o $$@ $$<

%.o: %.c $name.h
	$$(CC) $$(FLAGS) -c -o $$@ $$<

clean:
	rm -f example example.o lib$name.a lib$name.so $$(OBJECTS)

.PHONY: clean
""")


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
