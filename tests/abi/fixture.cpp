#include "fixture.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <executorch/runtime/platform/runtime.h>

#include "harness.h"

namespace fixture {
namespace {

using executorch::aten::ScalarType;
using executorch::runtime::FreeableBuffer;

uint32_t read_u32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// The payload starts four bytes before its magic; its header says where its last section starts, which is empty here.
std::vector<uint8_t> find_payload(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t magic = bytes.find("VH00");
  if (magic == std::string::npos || magic < 4) {
    throw std::runtime_error(path + ": no delegate payload found");
  }
  const auto* start = reinterpret_cast<const uint8_t*>(bytes.data()) + magic - 4;
  return {start, start + read_u32(start + 18)};
}

uint32_t get_data(void* context, const char* key, size_t key_len, EtwgpuData* out) {
  auto& host = *static_cast<Host*>(context);
  const std::string name(key, key_len);
  host.keys.push_back(name);
  if (name == host.missing_key) {
    return 1;
  }
  auto found = Model::get().data->get_data(name);
  if (!found.ok()) {
    return 1;
  }
  auto* owner = new FreeableBuffer(std::move(*found));
  const size_t len = name == host.short_key ? owner->size() / 2 : owner->size();
  *out = {static_cast<const uint8_t*>(owner->data()), len, owner};
  ++host.lent;
  return 0;
}

void free_data(void* context, EtwgpuData* data) {
  delete static_cast<FreeableBuffer*>(data->owner);
  ++static_cast<Host*>(context)->returned;
}

uint32_t resize_output(
    void* context,
    size_t,
    const uint32_t* dims,
    size_t rank,
    uint8_t** out_data,
    size_t* out_len) {
  auto& host = *static_cast<Host*>(context);
  if (host.resize_fails) {
    return 1;
  }
  host.output_dims.assign(dims, dims + rank);
  size_t bytes = sizeof(float);
  for (const uint32_t size : host.output_dims) {
    bytes *= size;
  }
  host.output.assign(bytes, 0xAA);
  *out_data = host.output.data();
  *out_len = bytes;
  return 0;
}

uint32_t set_scalar(void*, size_t, int64_t) {
  return 1;
}

void profile(void* context, const char*, size_t, uint64_t start_ns, uint64_t end_ns) {
  static_cast<Host*>(context)->steps.emplace_back(start_ns, end_ns);
}

EtwgpuArg tensor(ScalarType type, const void* data, size_t len, const int32_t* dims, const uint8_t* order, size_t rank) {
  EtwgpuArg arg{};
  arg.kind = ETWGPU_ARG_TENSOR;
  arg.scalar_type = static_cast<int32_t>(type);
  arg.data = static_cast<const uint8_t*>(data);
  arg.len = len;
  arg.dims = dims;
  arg.dim_order = order;
  arg.rank = rank;
  return arg;
}

} // namespace

Model::Model() : payload(find_payload(harness::model_path())) {
  executorch::runtime::runtime_init();
  auto loader = executorch::extension::FileDataLoader::from(harness::model_path().c_str());
  if (!loader.ok()) {
    throw std::runtime_error("cannot open " + harness::model_path());
  }
  loader_ = std::make_unique<executorch::extension::FileDataLoader>(std::move(*loader));
  auto program = executorch::runtime::Program::load(loader_.get());
  if (!program.ok()) {
    throw std::runtime_error("cannot load " + harness::model_path());
  }
  program_ = std::make_unique<executorch::runtime::Program>(std::move(*program));
  data = program_->get_named_data_map().get();
  const auto meta = program_->method_meta("forward").get();
  vocabulary = static_cast<size_t>(meta.output_tensor_meta(0)->sizes()[1]);
  longest = static_cast<size_t>(meta.input_tensor_meta(0)->sizes()[1]);
}

const Model& Model::get() {
  static const Model model;
  return model;
}

EtwgpuHost Host::table(bool profiled) {
  EtwgpuHost host{};
  host.context = this;
  host.get_data = get_data;
  host.free_data = free_data;
  host.resize_output = resize_output;
  host.set_scalar = set_scalar;
  host.profile = profiled ? profile : nullptr;
  return host;
}

std::string last_error() {
  std::string text(etwgpu_last_error(nullptr, 0) + 1, '\0');
  text.resize(etwgpu_last_error(text.data(), text.size()));
  return text;
}

EtwgpuInit request(Host& host, const std::vector<uint8_t>& payload) {
  EtwgpuInit init{};
  init.host = host.table();
  init.payload = payload.data();
  init.payload_len = payload.size();
  return init;
}

Program load() {
  Host host;
  const EtwgpuInit init = request(host, Model::get().payload);
  EtwgpuProgram* program = nullptr;
  if (etwgpu_init(&init, &program) != ETWGPU_OK) {
    throw std::runtime_error("cannot load the model: " + last_error());
  }
  return Program(program);
}

Arguments::Arguments(std::vector<int64_t> ids, int64_t at)
    : tokens(std::move(ids)),
      position(at),
      token_dims{1, static_cast<int32_t>(tokens.size())},
      output_dims{1, static_cast<int32_t>(Model::get().vocabulary)},
      args{
          tensor(ScalarType::Long, tokens.data(), tokens.size() * sizeof(int64_t), token_dims, order_2, 2),
          tensor(ScalarType::Long, &position, sizeof(position), position_dims, order_1, 1),
          tensor(ScalarType::Float, nullptr, 0, output_dims, order_2, 2)} {}

std::vector<uint8_t> run(EtwgpuProgram* program, Arguments& arguments) {
  Host host;
  const EtwgpuHost table = host.table();
  if (etwgpu_execute(program, &table, arguments.args, 3) != ETWGPU_OK) {
    throw std::runtime_error("cannot execute the model: " + last_error());
  }
  return host.output;
}

} // namespace fixture
