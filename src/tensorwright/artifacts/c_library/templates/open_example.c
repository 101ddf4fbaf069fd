/* example [THREADS [INPUTS $size_words]]: run the network, and print its outputs and its time.

   INPUTS is a file with the inputs one after the other, for the sizes behind it. Without it the
   network runs at all sizes of the table below: example_inputs_N.bin has the inputs for line N, and
   the outputs are compared with example_outputs_N.bin, which tensorwright computed. */
$tools
/* $size_words */
static const ${name}_sizes examples[] = {
$size_rows};

static void check(int error) {
    if (!error) return;
    fprintf(stderr, "%s: %s\n", "$name", ${name}_message(error));
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
    printf("$size_format:\n", $size_fields);
    int all_near = 1;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        const char *wanted = expected ? expected + ((char *)outputs[n] - results) : NULL;
        all_near &= report(&tensors[n], outputs[n], wanted);
    }
    qsort(times, RUNS, sizeof *times, by_size);
    double median_ms = times[RUNS / 2] * 1e3;
    printf("%.3f ms a run, the median of %d on %d threads\n", median_ms, RUNS, threads);
    free(given);
    free(expected);
    free(results);
    return all_near;
}

int main(int count, char **arguments) {
    if (count > 2 && count != 3 + $size_count) {
        fputs("example [THREADS [INPUTS $size_words]]\n", stderr);
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
