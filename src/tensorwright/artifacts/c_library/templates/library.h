/* $title, compiled by tensorwright for $target.

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
