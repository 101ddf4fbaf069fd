
${helpers}static int is_outside(const ${name}_sizes *sizes) {
    return $outside;
}

int ${name}_input_at(int n, const ${name}_sizes *sizes, ${name}_tensor *tensor) {
    if (n < 0 || n >= ${NAME}_INPUTS || !sizes || !tensor) return ${NAME}_BAD_ARGUMENT;
    if (is_outside(sizes)) return ${NAME}_BAD_SIZE;
    *tensor = ${name}_inputs[n];
$inputs    return ${NAME}_OK;
}

int ${name}_output_at(int n, const ${name}_sizes *sizes, ${name}_tensor *tensor) {
    if (n < 0 || n >= ${NAME}_OUTPUTS || !sizes || !tensor) return ${NAME}_BAD_ARGUMENT;
    if (is_outside(sizes)) return ${NAME}_BAD_SIZE;
    *tensor = ${name}_outputs[n];
$outputs    return ${NAME}_OK;
}

size_t ${name}_input_bytes(int n, const ${name}_sizes *sizes) {
    ${name}_tensor tensor;
    return ${name}_input_at(n, sizes, &tensor) ? 0 : tensor.size_bytes;
}

size_t ${name}_output_bytes(int n, const ${name}_sizes *sizes) {
    ${name}_tensor tensor;
    return ${name}_output_at(n, sizes, &tensor) ? 0 : tensor.size_bytes;
}
