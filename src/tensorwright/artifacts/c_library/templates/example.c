/* example [THREADS [INPUTS]]: run the network, and print its outputs and its time.

   INPUTS is a file with the inputs one after the other; without it example_inputs.bin is read, and
   the outputs are compared with example_outputs.bin, which tensorwright computed. */
$tools
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
        fprintf(stderr, "%s: %s\n", path, ${name}_message(error));
        return 1;
    }
    int all_near = 1;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++) {
        const char *wanted = expected ? expected + ((char *)outputs[n] - results) : NULL;
        all_near &= report(&${name}_outputs[n], outputs[n], wanted);
    }
    qsort(times, RUNS, sizeof *times, by_size);
    double median_ms = times[RUNS / 2] * 1e3;
    printf("%.3f ms a run, the median of %d on %d threads\n", median_ms, RUNS, threads);
    ${name}_free(model);
    free(given);
    free(expected);
    free(results);
    return all_near ? 0 : 1;
}
