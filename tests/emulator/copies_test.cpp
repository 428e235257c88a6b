#include <numeric>

#include "support.h"

namespace nanolm::emulated {
namespace {

// Loads and stores of each copy, as a device's compiler makes them: one a vector.
template <class T>
void expect_accesses(Copy how, int loads, int stores, std::size_t bytes_each = sizeof(T)) {
  SCOPED_TRACE("copy number " + std::to_string(static_cast<int>(how)) + " of a vector of " + std::to_string(sizeof(T)));
  std::vector<unsigned char> host(4 * sizeof(T));
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(1));
  DeviceBuffer<unsigned char> memory(host);
  emulator::reset_counters();
  copy(how, reinterpret_cast<T*>(memory.data()));
  const emulator::Counters counted = emulator::counters();
  EXPECT_EQ(counted.loads, loads);
  EXPECT_EQ(counted.stores, stores);
  EXPECT_EQ(counted.load_bytes, loads * static_cast<std::int64_t>(bytes_each));
  EXPECT_EQ(counted.store_bytes, stores * static_cast<std::int64_t>(bytes_each));
  EXPECT_NE(memory.to_host(), host) << "nothing was copied";
}

template <class T>
void expect_one_access_a_vector() {
  for (const Copy how : {Copy::kAssignment, Copy::kConstruction, Copy::kInitialisation, Copy::kZeroThenAssignment,
                         Copy::kReturnedByValue, Copy::kPassedByValue, Copy::kPassedOn, Copy::kElementToElement,
                         Copy::kReinterpreted, Copy::kReadOnly, Copy::kConditional, Copy::kByReference,
                         Copy::kMemberOfAStruct, Copy::kThroughAStruct, Copy::kLambda, Copy::kMemcpy, Copy::kStdMemcpy})
    expect_accesses<T>(how, 1, 1);
  for (const Copy how : {Copy::kThroughLocalArray, Copy::kStruct}) expect_accesses<T>(how, 2, 2);
  expect_accesses<T>(Copy::kMemcpyOfTwo, 1, 1, 2 * sizeof(T));  // one range
  expect_accesses<T>(Copy::kMakeAndMembers, 2, 2, sizeof(T{}.x));
}

TEST(Copies, Of8BytesAreOneAccess) {
  expect_one_access_a_vector<float2>();
  expect_one_access_a_vector<int2>();
}

TEST(Copies, Of16BytesAreOneAccess) {
  expect_one_access_a_vector<float4>();
  expect_one_access_a_vector<int4>();
  expect_one_access_a_vector<uint4>();
  expect_one_access_a_vector<double2>();
  expect_one_access_a_vector<longlong2>();
}

}  // namespace
}  // namespace nanolm::emulated
