/* The sizes of a call. ${name}_load reserves the memory of the greatest ones, $megabytes MB. */
typedef struct {
$fields} ${name}_sizes;

/* An input or an output at some sizes: *tensor becomes a tensor of the table with numbers in it.
   A size outside its bounds gives ${NAME}_BAD_SIZE. */
int ${name}_input_at(int n, const ${name}_sizes *sizes, ${name}_tensor *tensor);
int ${name}_output_at(int n, const ${name}_sizes *sizes, ${name}_tensor *tensor);

/* Its bytes at some sizes; 0 if these functions return an error. */
size_t ${name}_input_bytes(int n, const ${name}_sizes *sizes);
size_t ${name}_output_bytes(int n, const ${name}_sizes *sizes);

