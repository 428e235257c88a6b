// Written by scripts/explore_devices.py from include/nanolm/devices.h, where the sources are named. Do not edit.
// Peaks in FLOP/s, dense; main memory in bytes/s and bytes; shared memory of one SM in bytes.
(function (explore) {
  explore.devices = [
    {name: "T4", peaks: {fp32: 8.1e+12, fp16: 6.5e+13, int8: 1.3e+14},
     bytes_per_s: 3.2e+11, memory_bytes: 1.6e+10, sram_bytes_sm: 65536},
    {name: "A100 40GB SXM", peaks: {fp32: 1.95e+13, tf32: 1.56e+14, fp16: 3.12e+14, bf16: 3.12e+14, int8: 6.24e+14},
     bytes_per_s: 1.555e+12, memory_bytes: 4e+10, sram_bytes_sm: 167936},
    {name: "A100 80GB SXM", peaks: {fp32: 1.95e+13, tf32: 1.56e+14, fp16: 3.12e+14, bf16: 3.12e+14, int8: 6.24e+14},
     bytes_per_s: 2.039e+12, memory_bytes: 8e+10, sram_bytes_sm: 167936},
    {name: "A100 80GB PCIe", peaks: {fp32: 1.95e+13, tf32: 1.56e+14, fp16: 3.12e+14, bf16: 3.12e+14, int8: 6.24e+14},
     bytes_per_s: 1.935e+12, memory_bytes: 8e+10, sram_bytes_sm: 167936},
    {name: "H100 SXM", peaks: {fp32: 66900000000000.01, tf32: 4.947e+14, fp16: 9.894e+14, bf16: 9.894e+14, fp8: 1.9789e+15, int8: 1.9789e+15},
     bytes_per_s: 3.35e+12, memory_bytes: 8e+10, sram_bytes_sm: 233472},
    {name: "H100 PCIe", peaks: {fp32: 5.12e+13, tf32: 3.78e+14, fp16: 7.56e+14, bf16: 7.56e+14, fp8: 1.513e+15, int8: 1.513e+15},
     bytes_per_s: 2e+12, memory_bytes: 8e+10, sram_bytes_sm: 233472},
    {name: "H200", peaks: {fp32: 66900000000000.01, tf32: 4.947e+14, fp16: 9.894e+14, bf16: 9.894e+14, fp8: 1.9789e+15, int8: 1.9789e+15},
     bytes_per_s: 4.8e+12, memory_bytes: 1.41e+11, sram_bytes_sm: 233472},
    {name: "B200", peaks: {fp32: 7.5e+13, tf32: 1.125e+15, fp16: 2.25e+15, bf16: 2.25e+15, fp8: 4.5e+15, int8: 4.5e+15},
     bytes_per_s: 7.7e+12, memory_bytes: 1.8e+11, sram_bytes_sm: 233472},
    {name: "RTX 4090", peaks: {fp32: 8.26e+13, tf32: 8.26e+13, fp16: 1.652e+14, bf16: 1.652e+14, fp8: 3.303e+14, int8: 6.606e+14},
     bytes_per_s: 1.008e+12, memory_bytes: 2.4e+10, sram_bytes_sm: 102400},
    {name: "MI300X", peaks: {fp32: 1.634e+14, tf32: 6.537e+14, fp16: 1.3074e+15, bf16: 1.3074e+15, fp8: 2.6149e+15, int8: 2.6149e+15},
     bytes_per_s: 5.3e+12, memory_bytes: 1.92e+11, sram_bytes_sm: 65536},
  ];
})((globalThis.explore = globalThis.explore || {}));
