// The functions of cuda_runtime.h.
#include "runtime.h"

#include <chrono>
#include <cstdlib>

#include "environment.h"
#include "memory.h"

struct NanolmStream {
  unsigned flags;
};
struct NanolmEvent {
  std::chrono::steady_clock::time_point time;
  bool recorded, timed;
};

namespace nanolm::emulator {

thread_local cudaError_t Runtime::last_ = cudaSuccess;
thread_local std::string Runtime::detail_;

const Properties& Properties::get() {
  static const Properties properties{static_cast<int>(environment("NANOLM_EMULATOR_SMS", 132)),
                                     static_cast<int>(environment("NANOLM_EMULATOR_SHARED_BYTES", 232448)),
                                     static_cast<int>(environment("NANOLM_EMULATOR_CAPABILITY", 90))};
  return properties;
}

Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}
cudaError_t Runtime::note(cudaError_t error, const std::string& detail) {
  if (broken_) return cudaErrorLaunchFailure;
  if (error != cudaSuccess) last_ = error, detail_ = detail;
  return error;
}
cudaError_t Runtime::last(bool clear) {
  if (broken_) return cudaErrorLaunchFailure;
  const cudaError_t error = last_;
  if (clear) last_ = cudaSuccess;
  return error;
}
void Runtime::break_down() { broken_ = true; }
void Runtime::reset() {
  broken_ = false;
  last_ = cudaSuccess;
}
void Runtime::set_dynamic_limit(const void* kernel, int bytes) {
  const std::lock_guard lock(mutex_);
  dynamic_limits_[kernel] = bytes;
}
std::size_t Runtime::dynamic_limit(const void* kernel) {
  const std::lock_guard lock(mutex_);
  const auto found = dynamic_limits_.find(kernel);
  return found == dynamic_limits_.end() ? 48 * 1024 : static_cast<std::size_t>(found->second);
}

namespace {

cudaError_t note(cudaError_t error) { return Runtime::get().note(error); }

// Whether these bytes are where the direction of the copy says: in one live allocation, or on the host.
bool lies(const void* pointer, std::size_t bytes, bool on_device) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  DeviceMemory& memory = DeviceMemory::get();
  return on_device ? memory.holds(address, bytes) : pointer && !memory.contains(address);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (Runtime::get().broken()) return cudaErrorLaunchFailure;
  if (bytes == 0) return cudaSuccess;
  const auto on_device = [](const void* p) {
    return DeviceMemory::get().contains(reinterpret_cast<std::uintptr_t>(p));
  };
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) to_device = on_device(to), from_device = on_device(from);
  if (!lies(to, bytes, to_device) || !lies(from, bytes, from_device)) return note(cudaErrorInvalidValue);
  const DeviceMemory::Opened opened;
  std::memmove(to, from, bytes);
  if (to_device) DeviceMemory::get().written(to, bytes);
  return cudaSuccess;
}

cudaError_t fill(void* pointer, int byte, std::size_t bytes) {
  if (Runtime::get().broken()) return cudaErrorLaunchFailure;
  if (bytes == 0) return cudaSuccess;
  if (!lies(pointer, bytes, true)) return note(cudaErrorInvalidValue);
  const DeviceMemory::Opened opened;
  std::memset(pointer, byte, bytes);
  DeviceMemory::get().written(pointer, bytes);
  return cudaSuccess;
}

cudaError_t finished() { return note(cudaSuccess); }

}  // namespace
}  // namespace nanolm::emulator

using nanolm::emulator::copy;
using nanolm::emulator::DeviceMemory;
using nanolm::emulator::fill;
using nanolm::emulator::finished;
using nanolm::emulator::note;
using nanolm::emulator::Properties;
using nanolm::emulator::Runtime;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection:
      return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  return "unrecognized error code";
}
static const char* with_detail(const char* words) {
  thread_local std::string text;
  text = Runtime::detail().empty() ? words : words + (": " + Runtime::detail());
  return text.c_str();
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return with_detail("invalid argument");
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return with_detail("invalid configuration argument");
    case cudaErrorInvalidMemcpyDirection:
      return "invalid copy direction for memcpy";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}
cudaError_t cudaGetLastError() { return Runtime::get().last(true); }
cudaError_t cudaPeekAtLastError() { return Runtime::get().last(false); }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (!pointer) return note(cudaErrorInvalidValue);
  if (Runtime::get().broken()) return cudaErrorLaunchFailure;
  *pointer = bytes ? DeviceMemory::get().allocate(bytes) : nullptr;
  return note(bytes && !*pointer ? cudaErrorMemoryAllocation : cudaSuccess);
}
// After a Fault too: what releases memory on the way out has nothing to add to what the Fault said.
cudaError_t cudaFree(void* pointer) {
  if (!pointer || DeviceMemory::get().free(pointer)) return cudaSuccess;
  return note(cudaErrorInvalidValue);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  *pointer = std::malloc(bytes ? bytes : 1);
  return note(*pointer ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* pointer, int byte, std::size_t bytes) { return fill(pointer, byte, bytes); }
cudaError_t cudaMemsetAsync(void* pointer, int byte, std::size_t bytes, cudaStream_t) {
  return fill(pointer, byte, bytes);
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = DeviceMemory::get().free_bytes();
  *total_bytes = DeviceMemory::get().limit();
  return finished();
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags > cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
  *stream = new NanolmStream{flags};
  return finished();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return finished(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return finished(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  return note(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new NanolmEvent{{}, false, !(flags & cudaEventDisableTiming)};
  return finished();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return note(cudaErrorInvalidResourceHandle);
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  return finished();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return note(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
  if (!start || !stop || !start->recorded || !stop->recorded || !start->timed || !stop->timed)
    return note(cudaErrorInvalidResourceHandle);
  *ms = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return finished();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return finished(); }
cudaError_t cudaDeviceReset() {
  Runtime::get().reset();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return finished();
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return finished();
}
cudaError_t cudaSetDevice(int device) { return note(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return note(cudaErrorInvalidDevice);
  const Properties& p = Properties::get();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 * 1024;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrClockRate:
      *value = 1980000;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = p.sms;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 50 << 20;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.capability % 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = p.shared_bytes_per_block + 1024;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = p.shared_bytes_per_block;
      break;
    default:
      return note(cudaErrorInvalidValue);
  }
  return finished();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return note(cudaErrorInvalidDevice);
  const Properties& p = Properties::get();
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated device");
  properties->totalGlobalMem = DeviceMemory::get().limit();
  properties->sharedMemPerBlock = 48 * 1024;
  properties->sharedMemPerBlockOptin = static_cast<std::size_t>(p.shared_bytes_per_block);
  properties->sharedMemPerMultiprocessor = properties->sharedMemPerBlockOptin + 1024;
  properties->major = p.capability / 10;
  properties->minor = p.capability % 10;
  properties->multiProcessorCount = p.sms;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 50 << 20;
  return finished();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return finished();
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > Properties::get().shared_bytes_per_block) return note(cudaErrorInvalidValue);
    Runtime::get().set_dynamic_limit(kernel, value);
  }
  return finished();
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          std::size_t dynamic_bytes) {
  if (block_size < 1 || block_size > 1024) return note(cudaErrorInvalidValue);
  // 1 KiB of each block's shared memory is the system's. Static arrays and registers are not counted.
  const int by_memory = Properties::get().shared_bytes_per_block / static_cast<int>(dynamic_bytes + 1024);
  *blocks = std::min({2048 / ((block_size + 31) / 32 * 32), by_memory, 32});
  return finished();
}
