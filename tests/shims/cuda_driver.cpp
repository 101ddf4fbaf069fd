// A driver of CUDA on the processor: memory is that of malloc, code is a shared object that
// `tests/cuda_driver.py` compiles for the shim, and nothing in the stream is done before a wait.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

#define CALL extern "C" int
enum { SUCCESS, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500 };

extern "C" {
// What tests set: what the machine has, and what calls give.
int shim_major = 9, shim_minor = 0, shim_devices = 1, shim_version = 13000;
int shim_init = SUCCESS, shim_load = SUCCESS, shim_wait = SUCCESS, shim_graph = SUCCESS,
    shim_context = SUCCESS;
long long shim_memory = 1 << 30;
// What tests read.
long long shim_allocated = 0, shim_modules = 0, shim_allowed = 0, shim_graphs = 0;
long long shim_graph_launches = 0, shim_copies = 0;
}

struct Function {
    void (*launch)(void **, const unsigned *, const unsigned *);
    int arguments;
    unsigned shared;
};
static std::map<char *, size_t> sizes;
using Work = std::vector<std::function<void()>>;
static Work stream;
static Work *captured = nullptr;  // where what is put into the stream goes instead

static void put(std::function<void()> work) {
    (captured ? *captured : stream).push_back(std::move(work));
}
static bool has_context = false;

static void finish() {
    auto work = std::move(stream);
    stream.clear();
    for (auto &each : work) each();
}

CALL cuInit(unsigned) { return shim_init; }
CALL cuDriverGetVersion(int *version) { return *version = shim_version, SUCCESS; }
CALL cuGetErrorName(int result, const char **name) {
    static std::map<int, const char *> names = {
        {1, "CUDA_ERROR_INVALID_VALUE"},       {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {100, "CUDA_ERROR_NO_DEVICE"},         {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {500, "CUDA_ERROR_NOT_FOUND"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},   {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};
    if (!names.count(result)) return *name = nullptr, INVALID;
    return *name = names[result], SUCCESS;
}
CALL cuDeviceGetCount(int *count) { return *count = shim_devices, SUCCESS; }
CALL cuDeviceGet(int *device, int number) { return *device = number, SUCCESS; }
CALL cuDeviceGetName(char *name, int size, int) {
    return snprintf(name, size, "Card of the shim"), SUCCESS;
}
CALL cuDeviceGetAttribute(int *value, int attribute, int) {
    std::map<int, int> values = {{1, 1024},      {8, 49152},   {10, 32},     {12, 65536},
                                 {16, 66},       {36, 1000000}, {37, 4096},  {38, 25 << 20},
                                 {75, shim_major}, {76, shim_minor}, {81, 233472}, {97, 232448},
                                 {106, 32}};
    if (!values.count(attribute)) return INVALID;
    return *value = values[attribute], SUCCESS;
}
CALL cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = shim_memory, SUCCESS; }
CALL cuDevicePrimaryCtxRetain(void **context, int) { return *context = &sizes, shim_context; }
CALL cuCtxSetCurrent(void *context) {
    has_context = context == &sizes;
    return has_context ? SUCCESS : INVALID;
}
CALL cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    *free_bytes = shim_memory - shim_allocated, *total = shim_memory;
    return SUCCESS;
}
CALL cuMemAlloc_v2(uint64_t *address, size_t size) {
    if (!size || !has_context) return INVALID;
    if (size > (size_t)(shim_memory - shim_allocated)) return NO_MEMORY;
    char *memory = (char *)aligned_alloc(256, (size + 255) / 256 * 256);
    memset(memory, 0xa5, size);
    sizes[memory] = size, shim_allocated += size;
    return *address = (uint64_t)memory, SUCCESS;
}
CALL cuMemFree_v2(uint64_t address) {
    auto each = sizes.find((char *)address);
    if (each == sizes.end()) return INVALID;
    finish();
    shim_allocated -= each->second;
    free(each->first), sizes.erase(each);
    return SUCCESS;
}

// Whether bytes are in one piece of the card's memory.
static bool is_ours(uint64_t address, size_t size) {
    auto next = sizes.upper_bound((char *)address);
    if (next == sizes.begin()) return false;
    auto [start, bytes] = *std::prev(next);
    return (char *)address + size <= start + bytes;
}
CALL cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *) {
    if (!is_ours(to, size)) return INVALID;
    put([=] { memcpy((void *)to, from, size); });
    return SUCCESS;
}
CALL cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *) {
    if (!is_ours(from, size)) return INVALID;
    put([=] { memcpy(to, (void *)from, size); });
    return SUCCESS;
}
CALL cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *) {
    if (!is_ours(from, size) || !is_ours(to, size)) return INVALID;
    shim_copies++;
    put([=] { memcpy((void *)to, (void *)from, size); });
    return SUCCESS;
}
CALL cuStreamCreate(void **result, unsigned) { return *result = &stream, SUCCESS; }
CALL cuStreamSynchronize(void *given) {
    if (given != &stream || captured) return INVALID;
    finish();
    return shim_wait;
}

CALL cuStreamBeginCapture_v2(void *given, int) {
    if (given != &stream || captured || shim_graph) return shim_graph ? shim_graph : INVALID;
    captured = new Work;
    return SUCCESS;
}
CALL cuStreamEndCapture(void *given, void **graph) {
    if (given != &stream || !captured) return INVALID;
    *graph = captured, captured = nullptr, shim_graphs++;
    return SUCCESS;
}
CALL cuGraphInstantiateWithFlags(void **launches, void *graph, uint64_t) {
    shim_graphs++;
    return *launches = new Work(*(Work *)graph), SUCCESS;
}
CALL cuGraphUpload(void *, void *given) { return given == &stream ? SUCCESS : INVALID; }
CALL cuGraphLaunch(void *launches, void *given) {
    if (given != &stream) return INVALID;
    shim_graph_launches++;
    for (auto &each : *(Work *)launches) put(each);
    return SUCCESS;
}
CALL cuGraphDestroy(void *graph) { return delete (Work *)graph, shim_graphs--, SUCCESS; }
CALL cuGraphExecDestroy(void *launches) { return delete (Work *)launches, shim_graphs--, SUCCESS; }

CALL cuEventCreate(void **event, unsigned) { return *event = new double(0), SUCCESS; }
CALL cuEventRecord(void *event, void *) {
    put([=] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        *(double *)event = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
    });
    return SUCCESS;
}
CALL cuEventRecordWithFlags(void *event, void *given, unsigned) {
    return captured ? cuEventRecord(event, given) : INVALID;
}
CALL cuEventDestroy_v2(void *event) { return delete (double *)event, SUCCESS; }
CALL cuEventElapsedTime(float *taken_ms, void *start, void *end) {
    if (!stream.empty()) return INVALID;
    return *taken_ms = (float)(*(double *)end - *(double *)start), SUCCESS;
}

CALL cuModuleLoadData(void **module, const char *image) {
    if (shim_load) return shim_load;
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    const size_t size = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
    const int file = memfd_create("module", 0);
    if (write(file, image, size) != (ssize_t)size) return INVALID;
    *module = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    // The file stays open: a module is found again by its path.
    if (!*module) return 200;
    shim_modules++;
    return SUCCESS;
}
CALL cuModuleUnload(void *) { return shim_modules--, SUCCESS; }
CALL cuModuleGetFunction(void **function, void *module, const char *name) {
    auto launch = (decltype(Function::launch))dlsym(module, ("launch_" + std::string(name)).c_str());
    auto arguments = (int *)dlsym(module, ("arguments_" + std::string(name)).c_str());
    if (!launch || !arguments) return NOT_FOUND;
    return *function = new Function{launch, *arguments, 49152}, SUCCESS;
}
CALL cuFuncSetAttribute(Function *function, int attribute, int value) {
    if (attribute != 8 || value > 232448) return INVALID;
    function->shared = shim_allowed = value;
    return SUCCESS;
}
CALL cuLaunchKernel(Function *function, unsigned x, unsigned y, unsigned z, unsigned bx,
                    unsigned by, unsigned bz, unsigned shared, void *given, void **values,
                    void **) {
    if (!x || !y || !z || bx * by * bz > 1024 || shared > function->shared) return INVALID;
    if (given != &stream) return INVALID;
    std::vector<void *> arguments;
    for (int n = 0; n < function->arguments; n++) arguments.push_back(*(void **)values[n]);
    put([=]() mutable {
        const unsigned grid[] = {x, y, z}, block[] = {bx, by, bz};
        function->launch(arguments.data(), grid, block);
    });
    return SUCCESS;
}
