// Given to lesson 09: Student's t distribution for any real number of degrees of freedom, without a library or a table.
//
//   P(|T| >= t) = I_x(a, 1/2)      a = dof / 2, x = dof / (dof + t^2), 1 - x = t^2 / (dof + t^2)
//
// I is the incomplete beta function. Two ways to it:
//   fraction  the continued fraction DLMF 8.17.22 by Lentz's method. It is quick except near x = 1 with a large a.
//   series    with s = exp(-w) the integral becomes that of exp(-T w) w^(-1/2) (sinh(w/2) / (w/2))^(-1/2) from -ln x
//             on, T = a - 1/4. Each power of w gives an incomplete gamma function, the first one a normal tail, and the
//             same sum from 0 on is the divisor. It is quick exactly there.
// Against 60-digit arithmetic at 5200 points, 0.01 <= dof <= 1e9 or infinite and |t| <= 1e6, the largest error of
// student_t_cdf is 7e-16, and that of student_t_tail relative to its value 1.7e-13, wherever it is above 1e-300.
// Source: DLMF, section 8.17; the series is that of DiDonato & Morris 1992, ACM TOMS 18, for b = 1/2.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nanolm/require.h"

namespace nanolm {

namespace student_t_detail {

// sum over n of c_n T^(-2n) Gamma(2n + 1/2, q) / Gamma(1/2), c_n the Taylor coefficients of (sinh(w/2) / (w/2))^(-1/2)
// in w^2. At T >= 19.75 and q <= T / 2 the first one left out is below 1e-16 of the sum.
inline double gamma_series(double T, double q) {
  constexpr std::array<double, 6> c{-1.0 / 48,           1.0 / 2560,          -61.0 / 7741440,
                                    1261.0 / 7431782400, -79.0 / 20761804800, 66643.0 / 761775532277760};
  double gamma = std::erfc(std::sqrt(q));  // Gamma(s, q) / Gamma(1/2), s = 1/2
  double power = std::sqrt(q / std::acos(-1.0)) * std::exp(-q);
  double sum = gamma, scale = 1, s = 0.5;
  for (const double coefficient : c) {
    for (int step = 0; step < 2; ++step) {  // Gamma(s + 1, q) = s Gamma(s, q) + q^s exp(-q)
      gamma = s * gamma + power;
      power *= q;
      s += 1;
    }
    scale /= T * T;
    sum += coefficient * scale * gamma;
  }
  return sum;
}

// 1 / (1 + d_1 / (1 + d_2 / (1 + ...))) of DLMF 8.17.22.
inline double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  double value = 1, numerator = 1, denominator = 0;
  for (int i = 1; i <= 1000; ++i) {
    const double m = i / 2;
    const double d = i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    denominator = 1 + d * denominator;
    if (std::abs(denominator) < tiny) denominator = tiny;
    denominator = 1 / denominator;
    numerator = 1 + d / numerator;
    if (std::abs(numerator) < tiny) numerator = tiny;
    value *= numerator * denominator;
    if (std::abs(numerator * denominator - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return 1 / value;
}

}  // namespace student_t_detail

// P(|T| >= |t|): the two-sided p-value of t. Keeps its digits where it is small, as 2 * (1 - cdf) would not.
// NaN for t = NaN. Throws std::invalid_argument unless dof > 0; +inf is the normal distribution.
inline double student_t_tail(double t, double dof) {
  require(dof > 0, "degrees of freedom must be positive, got ", dof);
  t = std::abs(t);
  if (std::isnan(t)) return t;
  if (dof > 1e25) return std::erfc(t / std::sqrt(2.0));  // t^2 / dof below 1e-16 wherever the tail is not 0
  if (std::isinf(t)) return 0;

  const double a = dof / 2, T = a - 0.25;
  const double tangent = std::min(t / std::sqrt(dof), 1e300);
  const double w = tangent < 1e8 ? std::log1p(tangent * tangent) : 2 * std::log(t) - std::log(dof);  // -ln x
  const double radius = std::hypot(1.0, tangent);
  const double x = 1 / radius / radius, sine = tangent / radius, y = sine * sine;
  const bool large = a >= 20;
  if (large && w <= 0.5) return student_t_detail::gamma_series(T, T * w) / student_t_detail::gamma_series(T, 0);
  // x^a (1 - x)^(1/2) Gamma(a + 1/2) / (Gamma(a + 1) Gamma(1/2)); the ratio for a large a from the series at t = 0.
  const double ratio =
      large ? std::sqrt(T) / a / student_t_detail::gamma_series(T, 0) : std::tgamma(a + 0.5) / std::tgamma(a + 1);
  const double front = std::exp(-a * w) * sine * ratio / std::sqrt(std::acos(-1.0));
  if (x < (a + 1) / (a + 2.5)) return front * student_t_detail::beta_fraction(a, 0.5, x);
  return 1 - 2 * a * front * student_t_detail::beta_fraction(0.5, a, y);  // I_x(a, b) = 1 - I_(1-x)(b, a)
}

// P(T <= t).
inline double student_t_cdf(double t, double dof) {
  const double tail = student_t_tail(t, dof);
  return t < 0 ? tail / 2 : 1 - tail / 2;
}

}  // namespace nanolm
