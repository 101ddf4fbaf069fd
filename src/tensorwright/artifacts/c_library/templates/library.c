#include "$name.h"

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
