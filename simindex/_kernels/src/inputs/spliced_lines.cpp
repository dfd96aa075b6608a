#include "inputs/spliced_lines.hpp"

#include <cstring>
#include <string_view>

namespace simindex {
namespace {

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether a line has some bytes. An underscore among them is looked for first: texts have few.
class Finder {
 public:
  explicit Finder(std::string_view wanted)
      : wanted_(wanted), rare_(wanted.find('_') == wanted.npos ? 0 : wanted.find('_')) {}

  bool in(std::string_view line) const {
    if (wanted_.empty()) return false;
    for (std::size_t at = rare_; (at = line.find(wanted_[rare_], at)) != line.npos; ++at) {
      if (line.substr(at - rare_).starts_with(wanted_)) return true;
    }
    return false;
  }

 private:
  std::string_view wanted_;
  std::size_t rare_;
};

}  // namespace

SplicedLines spliced_lines(std::span<const std::uint8_t> block, std::span<const std::int64_t> starts,
                           std::span<const std::uint8_t> inserts,
                           std::span<const std::int64_t> insert_ends,
                           std::span<const std::uint8_t> without, std::uint8_t* out) {
  const Finder finder(as_text(without));
  std::uint8_t* const begin = out;
  const auto copy = [&](std::span<const std::uint8_t> bytes) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  };
  const auto part = [](auto all, std::span<const std::int64_t> ends, std::size_t i) {
    const auto from = static_cast<std::size_t>(ends[i]);
    return all.subspan(from, static_cast<std::size_t>(ends[i + 1]) - from);
  };
  std::size_t done = 0;
  for (; done + 1 < starts.size(); ++done) {
    const std::span<const std::uint8_t> line = part(block, starts, done);
    const std::size_t last = as_text(line).find_last_not_of(" \t\n\v\f\r");
    if (last == std::string_view::npos || finder.in(as_text(line))) break;
    copy(line.first(last));
    copy(part(inserts, insert_ends, done));
    copy(line.subspan(last + 1));
    if (line.back() != '\n') *out++ = '\n';
  }
  return {done, static_cast<std::size_t>(out - begin)};
}

}  // namespace simindex
