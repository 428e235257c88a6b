// Linear attention: without softmax the order of the products is free (notes/08_linear_attention.md).
#include <algorithm>
#include <vector>

#include "nanolm/linear_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
// One head of a tensor [batch, heads, seqlen, dim].
template <class T>
std::span<T> head_of(std::span<T> tensor, const LinearShape& shape, std::int64_t head, std::int64_t dim) {
  const auto size = static_cast<std::size_t>(shape.seqlen * dim);
  return tensor.subspan(static_cast<std::size_t>(head) * size, size);
}
// One row of a matrix with `columns` columns.
template <class T>
std::span<T> row_of(std::span<T> matrix, std::int64_t row, std::int64_t columns) {
  return matrix.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns));
}
// c += a^T b: adds the outer product of two vectors to a matrix [a.size(), b.size()].
void add_outer(std::span<const float> a, std::span<const float> b, std::span<float> c) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) c[i * b.size() + j] += a[i] * b[j];
}
// c = a B for a vector and a matrix [a.size(), c.size()].
void multiply(std::span<const float> a, std::span<const float> B, std::span<float> c) {
  std::fill(c.begin(), c.end(), 0.0f);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < c.size(); ++j) c[j] += a[i] * B[i * c.size() + j];
}
}  // namespace

void scores_first(const LinearShape& shape, std::span<const float> Q, std::span<const float> K,
                  std::span<const float> V, std::span<float> O) {
  check_linear(shape, Q, K, V, O);
  for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
    const auto q = head_of(Q, shape, head, shape.head_dim), k = head_of(K, shape, head, shape.head_dim);
    const auto v = head_of(V, shape, head, shape.value_dim);
    const auto o = head_of(O, shape, head, shape.value_dim);
    std::vector<float> scores(static_cast<std::size_t>(shape.seqlen * shape.seqlen), 0.0f);
    for (std::int64_t i = 0; i < shape.seqlen; ++i)
      for (std::int64_t j = 0; j < shape.seqlen; ++j)
        for (std::int64_t h = 0; h < shape.head_dim; ++h)
          scores.data()[i * shape.seqlen + j] += q.data()[i * shape.head_dim + h] * k.data()[j * shape.head_dim + h];
    for (std::int64_t i = 0; i < shape.seqlen; ++i)
      multiply(row_of(std::span<const float>(scores), i, shape.seqlen), v, row_of(o, i, shape.value_dim));
  }
}

void state_first(const LinearShape& shape, std::span<const float> Q, std::span<const float> K, std::span<const float> V,
                 std::span<float> O) {
  check_linear(shape, Q, K, V, O);
  std::vector<float> state(static_cast<std::size_t>(shape.head_dim * shape.value_dim));
  for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
    const auto q = head_of(Q, shape, head, shape.head_dim), k = head_of(K, shape, head, shape.head_dim);
    const auto v = head_of(V, shape, head, shape.value_dim);
    const auto o = head_of(O, shape, head, shape.value_dim);
    std::fill(state.begin(), state.end(), 0.0f);
    for (std::int64_t t = 0; t < shape.seqlen; ++t)
      add_outer(row_of(k, t, shape.head_dim), row_of(v, t, shape.value_dim), state);
    for (std::int64_t t = 0; t < shape.seqlen; ++t)
      multiply(row_of(q, t, shape.head_dim), state, row_of(o, t, shape.value_dim));
  }
}

void linear_attention_step(std::span<const float> q, std::span<const float> k, std::span<const float> v,
                           std::span<float> state, std::span<float> out) {
  check_step(q, k, v, state, out);
  add_outer(k, v, state);
  multiply(q, state, out);
}

void causal_linear_attention(const LinearShape& shape, std::span<const float> Q, std::span<const float> K,
                             std::span<const float> V, std::span<float> O) {
  check_linear(shape, Q, K, V, O);
  std::vector<float> state(static_cast<std::size_t>(shape.head_dim * shape.value_dim));
  for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
    const auto q = head_of(Q, shape, head, shape.head_dim), k = head_of(K, shape, head, shape.head_dim);
    const auto v = head_of(V, shape, head, shape.value_dim);
    const auto o = head_of(O, shape, head, shape.value_dim);
    std::fill(state.begin(), state.end(), 0.0f);
    for (std::int64_t t = 0; t < shape.seqlen; ++t)
      linear_attention_step(row_of(q, t, shape.head_dim), row_of(k, t, shape.head_dim), row_of(v, t, shape.value_dim),
                            state, row_of(o, t, shape.value_dim));
  }
}

double scores_first_flop(double seqlen, double head_dim, double value_dim) {
  check_sizes({seqlen, head_dim, value_dim});
  return 2 * seqlen * seqlen * (head_dim + value_dim);
}

double state_first_flop(double seqlen, double head_dim, double value_dim) {
  check_sizes({seqlen, head_dim, value_dim});
  return 4 * seqlen * head_dim * value_dim;
}

double crossover_seqlen(double head_dim, double value_dim) {
  check_sizes({head_dim, value_dim});
  return 2 * head_dim * value_dim / (head_dim + value_dim);
}

}  // namespace nanolm
