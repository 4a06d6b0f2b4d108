#pragma once

#include <cstdint>
#include <string>

namespace gdrperf {

/// `value` with that many significant digits, as people write it: "0.001998", "12346", never "1.2e+04"; "-" for no number.
std::string plain_digits(double value, int digits = 4);

/// Four digits of a table's cell, zeros at its end included: "0.001998", "1.000", "12346".
std::string four_digits(double value);

/// "1 KiB", "15.6 MiB", "2.5 GiB": three significant digits.
std::string about_size(std::uint64_t bytes);

}  // namespace gdrperf
