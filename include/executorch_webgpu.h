#ifndef EXECUTORCH_WEBGPU_H
#define EXECUTORCH_WEBGPU_H

/* Generated from src/ffi by cbindgen. Do not edit: run `cargo xtask generate`. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/**
 * Version of the structs and functions below; grows by one with each incompatible change.
 */
#define ETWGPU_ABI_VERSION 1

/**
 * Success.
 */
#define ETWGPU_OK 0

/**
 * A broken invariant of the delegate.
 */
#define ETWGPU_INTERNAL 1

/**
 * The payload is malformed.
 */
#define ETWGPU_PAYLOAD 2

/**
 * An operator, or a form of one, that the delegate does not run.
 */
#define ETWGPU_UNSUPPORTED 3

/**
 * Arguments that do not fit the program.
 */
#define ETWGPU_SHAPE 4

/**
 * A runtime or compile option of a wrong type or value.
 */
#define ETWGPU_OPTION 5

/**
 * Named data that is missing or too short.
 */
#define ETWGPU_DATA 6

/**
 * No device, a lost device or an error of the graphics API.
 */
#define ETWGPU_DEVICE 7

/**
 * Device or host memory is exhausted.
 */
#define ETWGPU_OUT_OF_MEMORY 8

/**
 * `EtwgpuArg::kind`: an argument without a value.
 */
#define ETWGPU_ARG_NONE 0

/**
 * `EtwgpuArg::kind`: a tensor.
 */
#define ETWGPU_ARG_TENSOR 1

/**
 * `EtwgpuArg::kind`: an integer or a bool, in `int_value`.
 */
#define ETWGPU_ARG_INT 2

/**
 * `EtwgpuArg::kind`: a floating-point number, in `double_value`.
 */
#define ETWGPU_ARG_DOUBLE 3

/**
 * `EtwgpuOption::kind`: a bool, in `int_value` as 0 or 1.
 */
#define ETWGPU_OPTION_BOOL 0

/**
 * `EtwgpuOption::kind`: an integer, in `int_value`.
 */
#define ETWGPU_OPTION_INT 1

/**
 * `EtwgpuOption::kind`: a NUL-terminated string, in `string_value`.
 */
#define ETWGPU_OPTION_STRING 2

/**
 * A loaded program: device buffers, pipelines and the plan of one delegate instance. One call at a time; any thread.
 */
typedef struct EtwgpuProgram EtwgpuProgram;

/**
 * A runtime option (load-time runtime spec, or process-wide default).
 */
typedef struct {
  /**
   * NUL-terminated name.
   */
  const char *key;
  /**
   * One of `ETWGPU_OPTION_*`.
   */
  uint32_t kind;
  /**
   * Value of a bool or an integer.
   */
  int64_t int_value;
  /**
   * Value of a string; ExecuTorch's options hold at most 255 bytes.
   */
  const char *string_value;
} EtwgpuOption;

/**
 * Bytes lent by the host until `free_data` is called.
 */
typedef struct {
  /**
   * First byte; at least 4-byte aligned is faster, any alignment works.
   */
  const uint8_t *data;
  /**
   * Number of bytes.
   */
  size_t len;
  /**
   * What the host needs in order to free it.
   */
  void *owner;
} EtwgpuData;

/**
 * Everything the delegate asks of its host. A callback returns 0 for success. Callbacks that a call cannot need may be
 * null: `get_data` and `free_data` serve `etwgpu_init`, the others `etwgpu_execute`; `log` serves both.
 */
typedef struct {
  /**
   * Passed back to every callback but `log`.
   */
  void *context;
  /**
   * Names the source of the named data: as long as a program that was loaded from it lives, no other source has this
   * number. Programs of one source share constants of one key. 0 shares nothing.
   */
  uint64_t data_source;
  /**
   * Writes one line; `level` is 1 error, 2 warning, 3 info, 4 debug. Kept for the life of the process; called from any
   * thread; `message` is UTF-8 and not NUL-terminated.
   */
  void (*log)(uint32_t level, const char *message, size_t len);
  /**
   * Lends the named data `key` (UTF-8, `key_len` bytes, not NUL-terminated).
   */
  uint32_t (*get_data)(void *context, const char *key, size_t key_len, EtwgpuData *out);
  /**
   * Takes lent data back.
   */
  void (*free_data)(void *context, EtwgpuData *data);
  /**
   * Resizes the output at `index` among all arguments and tells where its bytes go and how many fit.
   */
  uint32_t (*resize_output)(void *context,
                            size_t index,
                            const uint32_t *dims,
                            size_t rank,
                            uint8_t **out_data,
                            size_t *out_len);
  /**
   * Sets the output at `index` among all arguments, a scalar EValue, to an integer.
   */
  uint32_t (*set_scalar)(void *context, size_t index, int64_t value);
  /**
   * Records one profiled step; times are nanoseconds on one clock. Null unless a tracer listens.
   */
  void (*profile)(void *context,
                  const char *name,
                  size_t name_len,
                  uint64_t start_ns,
                  uint64_t end_ns);
} EtwgpuHost;

/**
 * A compile spec: what the exporter wrote beside the payload.
 */
typedef struct {
  /**
   * NUL-terminated name.
   */
  const char *key;
  /**
   * Value; may be null when `len` is 0.
   */
  const uint8_t *data;
  /**
   * Bytes at `data`.
   */
  size_t len;
} EtwgpuSpec;

/**
 * Arguments of `etwgpu_init`.
 */
typedef struct {
  /**
   * Callbacks for this call.
   */
  EtwgpuHost host;
  /**
   * The delegate payload; not used after the call returns.
   */
  const uint8_t *payload;
  /**
   * Bytes at `payload`.
   */
  size_t payload_len;
  /**
   * Compile specs.
   */
  const EtwgpuSpec *specs;
  /**
   * Number of compile specs.
   */
  size_t specs_len;
  /**
   * Runtime options of this load; they override the process-wide ones.
   */
  const EtwgpuOption *options;
  /**
   * Number of runtime options.
   */
  size_t options_len;
} EtwgpuInit;

/**
 * One argument of `etwgpu_execute`. For an output tensor, `data` and `len` are ignored: `resize_output` gives them.
 */
typedef struct {
  /**
   * One of `ETWGPU_ARG_*`.
   */
  uint32_t kind;
  /**
   * ExecuTorch's `ScalarType` number, for a tensor.
   */
  int32_t scalar_type;
  /**
   * Integer or bool value.
   */
  int64_t int_value;
  /**
   * Floating-point value.
   */
  double double_value;
  /**
   * First element.
   */
  const uint8_t *data;
  /**
   * Bytes at `data`.
   */
  size_t len;
  /**
   * `rank` sizes.
   */
  const int32_t *dims;
  /**
   * `rank` entries, or null for the contiguous order.
   */
  const uint8_t *dim_order;
  /**
   * Number of dimensions.
   */
  size_t rank;
} EtwgpuArg;

/**
 * Bytes held on the device by kind.
 */
typedef struct {
  /**
   * Immutable constants.
   */
  uint64_t weights;
  /**
   * Constants that the program writes: KV caches.
   */
  uint64_t caches;
  /**
   * Inputs, outputs and intermediate tensors.
   */
  uint64_t activations;
  /**
   * Buffers that only one operator uses at a time.
   */
  uint64_t scratch;
  /**
   * Buffers that the host reads outputs from.
   */
  uint64_t staging;
  /**
   * Kernel parameters and per-call values.
   */
  uint64_t parameters;
  /**
   * The highest sum of all of the above so far.
   */
  uint64_t peak;
} EtwgpuMemory;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Version of this interface; equal to `ETWGPU_ABI_VERSION` of the header it was built with.
 */
uint32_t etwgpu_abi_version(void);

/**
 * True when a GPU adapter, or a CPU that stands in for one, can be opened.
 */
bool etwgpu_is_available(void);

/**
 * Copies the sentence of the last failure on this thread, NUL-terminated, cut to `capacity` bytes; returns its full
 * length without the NUL.
 *
 * # Safety
 * `buffer` is null or writable for `capacity` bytes.
 */
size_t etwgpu_last_error(char *buffer,
                         size_t capacity);

/**
 * Sets a process-wide default for programs loaded later.
 *
 * # Safety
 * `entry` is null or valid; its pointers are null or NUL-terminated strings.
 */
uint32_t etwgpu_set_option(const EtwgpuOption *entry);

/**
 * Reads a process-wide default. A string goes to `buffer`, which must hold it and a NUL, and `out->string_value` points
 * there.
 *
 * # Safety
 * `key` is null or a NUL-terminated string, `out` is null or writable, `buffer` is null or writable for `capacity` bytes.
 */
uint32_t etwgpu_get_option(const char *key,
                           EtwgpuOption *out,
                           char *buffer,
                           size_t capacity);

/**
 * Loads a program. On success `*out` holds a handle that `etwgpu_destroy` frees.
 *
 * # Safety
 * `init` is null or valid with valid pointers for its lengths; `out` is null or writable.
 */
uint32_t etwgpu_init(const EtwgpuInit *init, EtwgpuProgram **out);

/**
 * Runs a program: `args` are its inputs, then its outputs. All outputs are complete on return. A failure before the
 * device starts changes nothing.
 *
 * # Safety
 * `program` is null or a live handle that no other thread uses now; `host` is null or valid; `args` is null or readable
 * for `len` elements with valid pointers for their lengths.
 */
uint32_t etwgpu_execute(EtwgpuProgram *program,
                        const EtwgpuHost *host,
                        const EtwgpuArg *args,
                        size_t len);

/**
 * Frees a program. Null is nothing to free.
 *
 * # Safety
 * `program` is null or a live handle, which is dead afterwards.
 */
void etwgpu_destroy(EtwgpuProgram *program);

/**
 * What all programs of the process hold on devices.
 *
 * # Safety
 * `out` is null or writable.
 */
uint32_t etwgpu_memory(EtwgpuMemory *out);

/**
 * What one program holds on its device.
 *
 * # Safety
 * `program` is null or a live handle, `out` is null or writable.
 */
uint32_t etwgpu_program_memory(const EtwgpuProgram *program, EtwgpuMemory *out);

/**
 * Copies the plan of a program in words, NUL-terminated, cut to `capacity` bytes; returns its full length, 0 for null.
 *
 * # Safety
 * `program` is null or a live handle, `buffer` is null or writable for `capacity` bytes.
 */
size_t etwgpu_program_plan(const EtwgpuProgram *program,
                           char *buffer,
                           size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EXECUTORCH_WEBGPU_H */
