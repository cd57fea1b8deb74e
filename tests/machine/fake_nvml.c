/* A driver library for tests: answers like NVML, as the environment variable FAKE_NVML says:
   one, eight (NVLink through switches), pair (direct NVLink), mig, lost (second of two), hang (second of two),
   bare (no sensors or counters), empty (no GPU), unloaded (no kernel module), unified (GB10). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, NOT_LOADED = 9, LOST = 15 };
#define GIB (1024ULL * 1024 * 1024)
#define MIB (1024ULL * 1024)
#define MIG_HANDLE 100

typedef struct { char legacy[16]; unsigned domain, bus, device, pci, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; unsigned long long mebibytes; } Attributes;
typedef void *Device;

static int mode(const char *name) { const char *set = getenv("FAKE_NVML"); return set && !strcmp(set, name); }
static long number(Device device) { return (long)device; } /* handles count from 1 */
static int broken(Device device) {
    if (number(device) != 2) return OK;
    if (mode("hang")) sleep(600);
    return mode("lost") ? LOST : OK;
}
static int sensor(Device device) { int state = broken(device); return state ? state : mode("bare") ? NOT_SUPPORTED : OK; }
static int address(long index, Pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02lX:00.0", 16 + index);
    return OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return mode("unloaded") ? NOT_LOADED : OK; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == INVALID_ARGUMENT ? "Invalid Argument" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "570.133.20"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = mode("eight") ? 8 : mode("empty") ? 0 : mode("pair") || mode("lost") || mode("hang") ? 2 : 1;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    *device = (Device)(long)(index + 1);
    return mode("lost") && index == 1 ? LOST : OK;
}
int nvmlDeviceGetName(Device device, char *text, unsigned size) {
    int state = broken(device);
    if (state) return state;
    const char *name = mode("pair") ? "NVIDIA GeForce RTX 3090" : mode("unified") ? "NVIDIA GB10" : "NVIDIA H100 80GB HBM3";
    snprintf(text, size, "%s", number(device) >= MIG_HANDLE ? "NVIDIA H100 80GB HBM3 MIG 3g.40gb" : name);
    return OK;
}
int nvmlDeviceGetUUID(Device device, char *text, unsigned size) {
    snprintf(text, size, "%s-secret-%ld", number(device) >= MIG_HANDLE ? "MIG" : "GPU", number(device));
    return broken(device);
}
int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    int state = broken(device);
    if (state) return state;
    if (mode("unified")) return NOT_SUPPORTED;
    memory->total = number(device) >= MIG_HANDLE ? 40448 * MIB : mode("pair") ? 24576 * MIB : 81559 * MIB;
    memory->used = 1 * GIB;
    memory->free = memory->total - memory->used;
    return OK;
}
int nvmlDeviceGetPciInfo_v3(Device device, Pci *pci) { int state = broken(device); return state ? state : address(number(device) - 1, pci); }
int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) { *major = 9; *minor = 0; return broken(device); }
int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned *value) { *value = 1; return sensor(device); }
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned *value) { *value = 16; return sensor(device); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned *value) { *value = 5; return sensor(device); }
int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned *value) { *value = 16; return sensor(device); }
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *value) { *value = 700000; return sensor(device); }
int nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned *value) { *value = 650000; return sensor(device); }
int nvmlDeviceGetTemperatureThreshold(Device device, int kind, unsigned *value) { (void)kind; *value = 87; return sensor(device); }
int nvmlDeviceGetAttributes_v2(Device device, Attributes *found) { memset(found, 0, sizeof *found); found->gpu_slices = 3; return broken(device); }
int nvmlDeviceGetPowerUsage(Device device, unsigned *value) { *value = 123456; return sensor(device); }
int nvmlDeviceGetTemperature(Device device, int kind, unsigned *value) { (void)kind; *value = 41; return sensor(device); }
int nvmlDeviceGetClockInfo(Device device, int kind, unsigned *value) { (void)kind; *value = 1305; return sensor(device); }
int nvmlDeviceGetMaxClockInfo(Device device, int kind, unsigned *value) { (void)kind; *value = 1980; return sensor(device); }
int nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) { rates->gpu = 87; rates->memory = 12; return sensor(device); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *mask) { *mask = 0x4 | 0x1; return sensor(device); }
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, Process *processes) {
    int state = broken(device);
    if (state) return state;
    if (mode("bare")) return NOT_SUPPORTED;
    if (!mode("one")) { *count = 0; return OK; }
    if (*count < 2) { *count = 2; return INSUFFICIENT_SIZE; }
    *count = 2;
    processes[0] = (Process){1, 1 * GIB, 0, 0};
    processes[1] = (Process){999999, ~0ULL, 0, 0};
    return OK;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned *count, Process *processes) { (void)processes; *count = 0; return broken(device); }
int nvmlDeviceGetMigMode(Device device, unsigned *now, unsigned *pending) {
    if (mode("bare") || mode("pair") || mode("unified")) return NOT_SUPPORTED;
    *now = *pending = mode("mig");
    return broken(device);
}
int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count) { *count = 7; return broken(device); }
int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *instance) {
    (void)device;
    *instance = (Device)(long)(MIG_HANDLE + index);
    return index < 2 ? OK : NOT_FOUND;
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
    unsigned links = mode("eight") || mode("hang") || mode("lost") ? 18 : mode("pair") ? 4 : 0;
    if (!links) return NOT_SUPPORTED;
    *active = 1;
    return link < links ? broken(device) : INVALID_ARGUMENT;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, unsigned *kind) { (void)link; *kind = mode("pair") ? 0 : 2; return broken(device); }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, Pci *pci) { (void)link; return address(2 - number(device), pci); }
int nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level) { (void)first; (void)second; *level = 30; return OK; }
