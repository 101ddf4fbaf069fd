/* The features that the kernels need, as bits: this file has no code. */
extern const unsigned ${name}_needs;
const unsigned ${name}_needs = 0
$bits    ;
