#include "pairs/group.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace simindex {
namespace {

constexpr std::uint32_t kFewRows = 32;  // are compared before they are looked through for equal ones
constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15u;  // odd; 2^64 over the golden ratio

// In comparisons of two words.
constexpr std::uint64_t kCountCost = 16;      // a row counted by its key
constexpr std::uint64_t kPartitionCost = 64;  // a row moved to its part

constexpr int kMostKeyBits = 12;
constexpr int kFewestRunBits = 3;

std::uint32_t key_of(std::uint64_t bits, int shift) {
  return static_cast<std::uint32_t>((bits * kMixer) >> shift);
}

std::uint64_t pairs_of(std::uint64_t rows) { return rows * (rows - (rows != 0)) / 2; }

}  // namespace

Wish::Wish(const PairRows& of, const BlockChoice& choice, std::uint64_t radius)
    : rows(of), h(radius) {
  const std::uint32_t last = choice.agreeing.empty() ? 0 : choice.agreeing.back();
  std::size_t next = 0;
  for (std::uint32_t block = 0; block < last || next < choice.agreeing.size(); ++block) {
    const bool agrees = choice.agreeing[next] == block;
    next += agrees;
    (agrees ? agree_wide_ : differ_wide_).push_back(choice.blocks[block]);
  }
  if (rows.words != 1) return;
  for (const Bits& bits : agree_wide_)
    each_part(bits, [&](std::size_t, std::uint64_t mask) { return (agree |= mask) != 0; });
  for (const Bits& bits : differ_wide_)
    each_part(bits, [&](std::size_t, std::uint64_t mask) {
      differ.push_back(mask);
      return true;
    });
  agree_wide_.clear();
  differ_wide_.clear();
}

std::uint64_t Wish::word(std::size_t row) const {
  const std::uint64_t* from = rows.rows + row * rows.words;
  std::uint64_t all = from[0];
  for (std::size_t w = 1; w < rows.words; ++w)
    all ^= std::rotl(from[w], static_cast<int>(23 * w % 64));
  return all;
}

bool Wish::equal(std::uint32_t a, std::uint32_t b) const {
  const std::uint64_t* first = rows.rows + a * rows.words;
  return std::equal(first, first + rows.words, rows.rows + b * rows.words);
}

bool Wish::wide_wanted(std::uint32_t a, std::uint32_t b) const {
  const std::uint64_t* first = rows.rows + a * rows.words;
  const std::uint64_t* second = rows.rows + b * rows.words;
  const auto same = [&](const Bits& bits) {
    return each_part(bits, [&](std::size_t w, std::uint64_t mask) {
      return ((first[w] ^ second[w]) & mask) == 0;
    });
  };
  return std::all_of(agree_wide_.begin(), agree_wide_.end(), same) &&
         std::none_of(differ_wide_.begin(), differ_wide_.end(), same);
}

std::uint64_t Wish::distance(std::uint64_t differing, std::uint32_t a, std::uint32_t b) const {
  if (rows.words == 1) return portable::popcount(differing);
  const std::uint64_t* first = rows.rows + a * rows.words;
  const std::uint64_t* second = rows.rows + b * rows.words;
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < rows.words; ++w) bits += portable::popcount(first[w] ^ second[w]);
  return bits <= h && wide_wanted(a, b) ? bits : h + 1;
}

namespace {

// As in compare.hpp: of the bytes that are not blind, all but h are equal. Those of which most bits are
// shared are made blind first; the way that lets the fewest lines of uniform words pass is taken.
Sieve sieve_of(std::uint64_t agree, std::uint64_t h) {
  std::array<std::pair<int, int>, 8> bytes;  // bits that may differ, byte
  for (int byte = 0; byte < 8; ++byte)
    bytes[byte] = {8 - std::popcount((agree >> (8 * byte)) & 0xff), byte};
  std::sort(bytes.begin(), bytes.end());
  Sieve best;
  double least = Sieve::kMostPassing;
  std::uint64_t blind = 0;
  for (std::size_t count = 0; count < bytes.size(); ++count) {
    double expected = 0;
    for (std::size_t i = count; i < bytes.size(); ++i)
      expected += 8.0 / (1 << bytes[i].first);
    for (const int equal : {2, 3}) {
      const double passing = equal == 2 ? expected * expected / 2
                                        : expected * expected * expected / 6;
      if (h + count + static_cast<std::uint64_t>(equal) > 8 || passing > least) continue;
      least = passing;
      best.equal_bytes = equal;
      best.blind = blind;
    }
    blind |= std::uint64_t{0xff} << (8 * bytes[count].second);
  }
  return best;
}

}  // namespace

GroupPairs::GroupPairs(const Wish& wish, int level)
    : wish_(wish), level_(level), near_{wish.h, {}}, differ_(wish.differ) {
  look_for(wish.agree);
}

void GroupPairs::look_for(std::uint64_t agree) {
  agree_ = agree;
  near_.sieve = sieve_of(agree, near_.h);
  compare_ = comparing(near_.sieve, level_);
}

void GroupPairs::add(std::uint64_t* words, std::uint32_t* rows, const std::uint32_t* ends,
                     std::size_t groups, bool may_repeat, std::uint32_t usual,
                     const std::function<bool()>& stopped) {
  std::uint32_t most = kDirectRows;
  if (may_repeat) most = std::min(most, repeating_ * 8 > looked_at_ ? kFewRows : usual);
  looked_at_ += groups;
  for (std::size_t group = 0; group < groups && !stopped();) {
    candidates_.clear();
    const std::size_t next =
        compare_.groups(words, ends, group, groups, most, near_, candidates_);
    settle(words, rows, ends, group, may_repeat, stopped);
    group = next;
  }
  std::uint32_t begin = 0;
  for (std::size_t group = 0; group < groups; begin = ends[group++]) {
    std::uint32_t size = ends[group] - begin;
    if (size <= most) continue;
    if (may_repeat) size = without_repeats(words + begin, rows + begin, size);
    part(words + begin, rows + begin, size, stopped);
  }
}

// The candidates of some groups from `group` on.
void GroupPairs::settle(std::uint64_t* words, std::uint32_t* rows, const std::uint32_t* ends,
                        std::size_t group, bool may_repeat,
                        const std::function<bool()>& stopped) {
  for (const Candidate* found = candidates_.begin(); found != candidates_.end();) {
    while (ends[group] <= found->first) ++group;
    const Candidate* const first = found;
    while (found != candidates_.end() && found->first < ends[group]) ++found;
    if (may_repeat && repeats(words, rows, first, found)) {
      ++repeating_;
      const std::uint32_t begin = group == 0 ? 0 : ends[group - 1];
      const std::uint32_t size =
          without_repeats(words + begin, rows + begin, ends[group] - begin);
      direct(words + begin, rows + begin, size, stopped);
    } else {
      keep(words, rows, first, found);
    }
  }
}

bool GroupPairs::repeats(const std::uint64_t* words, const std::uint32_t* rows,
                         const Candidate* begin, const Candidate* end) const {
  return std::any_of(begin, end, [&](const Candidate& found) {
    return words[found.first] == words[found.second] &&
           wish_.equal(rows[found.first], rows[found.second]);
  });
}

// Of candidates, the pairs.
void GroupPairs::keep(const std::uint64_t* words, const std::uint32_t* rows,
                      const Candidate* begin, const Candidate* end) {
  for (const Candidate* found = begin; found != end; ++found) {
    const std::uint64_t differing = words[found->first] ^ words[found->second];
    bool wanted = (differing & agree_) == 0;
    for (const std::uint64_t mask : differ_) wanted &= (differing & mask) != 0;
    if (!wanted) continue;
    const std::uint32_t a = rows[found->first];
    const std::uint32_t b = rows[found->second];
    if (wish_.has_repeat(a, b)) continue;
    const std::uint64_t bits = wish_.distance(differing, a, b);
    if (bits <= wish_.h) pairs.push(a, b, bits);
  }
}

// A group without equal rows.
void GroupPairs::part(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size,
                      const std::function<bool()>& stopped) {
  if (size <= kDirectRows || !split(words, rows, size, stopped))
    direct(words, rows, size, stopped);
}

void GroupPairs::direct(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
                        const std::function<bool()>& stopped) {
  for (std::uint32_t first = 0; first < size; first += kTileRows) {
    add_tile(words, rows, size, first, stopped);
    if (size > kTileRows && stopped()) return;
  }
}

void GroupPairs::add_tile(const std::uint64_t* words, const std::uint32_t* rows,
                          std::uint32_t size, std::uint32_t first,
                          const std::function<bool()>& stopped) {
  const std::uint32_t last = std::min(size, first + kTileRows);
  for (std::uint32_t begin = 0; begin < last; begin += kTileRows) {
    tile_candidates_.clear();
    compare_.tile(words, {begin, std::min(last, begin + kTileRows), first, last}, near_,
                  tile_candidates_);
    keep(words, rows, tile_candidates_.begin(), tile_candidates_.end());
    if (size > kTileRows && stopped()) return;
  }
}

std::uint32_t GroupPairs::without_repeats(std::uint64_t* words, std::uint32_t* rows,
                                          std::uint32_t size) {
  const int bits = std::bit_width(size) + 1;
  const std::size_t mask = (std::size_t{1} << bits) - 1;
  table_.assign(mask + 1, 0);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint64_t word = words[i];
    const std::uint32_t row = rows[i];
    std::size_t at = key_of(word ^ (word >> 32), 64 - bits);
    for (; table_[at] != 0; at = (at + 1) & mask) {
      const std::uint32_t place = table_[at] - 1;
      if (words[place] == word && wish_.equal(rows[place], row)) {
        equal.push_back({rows[place], row});
        break;
      }
    }
    if (table_[at] != 0) continue;
    words[kept] = word;
    rows[kept] = row;
    table_[at] = ++kept;
  }
  return kept;
}

// False, and nothing is done, if comparing directly is less work.
bool GroupPairs::split(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
                       const std::function<bool()>& stopped) {
  std::uint64_t varying = 0;
  for (std::uint32_t i = 1; i < size; ++i) varying |= words[i] ^ words[0];
  const auto bits = static_cast<std::uint64_t>(portable::popcount(varying));
  const std::uint64_t runs = wish_.h + 1;
  if (bits < kFewestRunBits * runs) return false;
  const int key_bits =
      std::clamp(static_cast<int>(std::bit_width(size / 4)), 1, kMostKeyBits);
  const int shift = 64 - key_bits;

  std::vector<std::uint64_t> masks(runs);
  for (std::uint64_t run = 0, left = varying; run < runs; ++run) {
    for (std::uint64_t end = (run + 1) * bits / runs - run * bits / runs; end != 0; --end) {
      masks[run] |= left & -left;
      left &= left - 1;
    }
  }
  const std::size_t keys = std::size_t{1} << key_bits;
  std::vector<std::uint32_t> counts(runs * keys);
  std::uint64_t cost = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    std::uint32_t* const count = counts.data() + run * keys;
    for (std::uint32_t i = 0; i < size; ++i) ++count[key_of(words[i] & masks[run], shift)];
    for (std::size_t key = 0; key < keys; ++key) cost += pairs_of(count[key]);
    cost += (kCountCost + kPartitionCost) * size;
    if (cost > pairs_of(size)) return false;
  }

  std::vector<std::uint64_t> part_words(size + kPaddingWords);
  std::vector<std::uint32_t> part_rows(size);
  const std::uint64_t agree = agree_;
  const std::size_t earlier = differ_.size();
  for (std::uint64_t run = 0; run < runs && !stopped(); ++run) {
    std::uint32_t* const place = counts.data() + run * keys;
    std::uint32_t start = 0;
    for (std::size_t key = 0; key < keys; ++key) start += std::exchange(place[key], start);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t to = place[key_of(words[i] & masks[run], shift)]++;
      part_words[to] = words[i];
      part_rows[to] = rows[i];
    }
    look_for(agree | masks[run]);
    add(part_words.data(), part_rows.data(), place, keys, false, 0, stopped);
    differ_.push_back(masks[run]);
  }
  differ_.resize(earlier);
  look_for(agree);
  return true;
}

}  // namespace simindex
