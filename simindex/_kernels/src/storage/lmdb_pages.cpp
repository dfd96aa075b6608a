#include "storage/lmdb_pages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

namespace simindex {
namespace {

constexpr std::size_t kHeaderBytes = 16, kNodeBytes = 8, kRecordBytes = 48, kMetaBytes = 152;
constexpr std::size_t kMaxKeyBytes = 511, kMaxDepth = 32;
constexpr std::size_t kMinPageBytes = 512, kMaxPageBytes = 32768;
constexpr std::uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4;   // flags of a page
constexpr std::uint16_t kBig = 1, kDatabase = 2;                 // flags of a node
constexpr std::uint16_t kIntegerKeys = 8;                        // flags of a record
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// What a commit says of one tree.
struct Record {
  explicit Record(const std::uint8_t* at)
      : pad(load<std::uint32_t>(at)),
        flags(load<std::uint16_t>(at + 4)),
        depth(load<std::uint16_t>(at + 6)),
        branches(load<std::uint64_t>(at + 8)),
        leaves(load<std::uint64_t>(at + 16)),
        overflows(load<std::uint64_t>(at + 24)),
        entries(load<std::uint64_t>(at + 32)),
        root(load<std::uint64_t>(at + 40)) {}

  std::uint32_t pad;
  std::uint16_t flags, depth;
  std::uint64_t branches, leaves, overflows, entries, root;
};

enum class Tree { kFree, kMain, kNamed };

struct Node {
  explicit Node(const std::uint8_t* at)
      : size(load<std::uint16_t>(at) | std::uint32_t{load<std::uint16_t>(at + 2)} << 16),
        flags(load<std::uint16_t>(at + 4)),
        key_bytes(load<std::uint16_t>(at + 6)),
        key(at + kNodeBytes),
        value(key + key_bytes) {}

  std::uint64_t child() const { return size | std::uint64_t{flags} << 32; }

  std::uint32_t size;
  std::uint16_t flags, key_bytes;
  const std::uint8_t* key;
  const std::uint8_t* value;
};

class Walk {
 public:
  Walk(std::span<const std::uint8_t> file, std::size_t page_bytes, std::uint64_t pages)
      : file_(file), page_bytes_(page_bytes), pages_(pages),
        taken_((pages + 63) / 64), sizes_(page_bytes / 2),
        largest_node_((((page_bytes - kHeaderBytes) / 2) & ~std::size_t{1}) - 2) {
    taken_[0] = 3;  // the meta pages
  }

  bool tree(const Record& record, Tree kind) {
    kind_ = kind;
    if (record.root == kNoPage) {
      counts_ = {0, 0, 0, 0};
      if (record.depth != 0) return fail(PageFault::kMeta, 0);
      return compare_counts(record);
    }
    if (record.depth == 0 || record.depth > kMaxDepth) return fail(PageFault::kMeta, 0);
    depth_ = record.depth;
    bound_ = Bound::kNothing;
    counts_ = {0, 0, 0, 0};
    if (!enter(record.root, 0)) return false;
    for (std::size_t level = 0; depth_ > 1;) {
      Place& at = places_[level];
      if (at.next == at.count) {
        if (level == 0) break;
        --level;
        continue;
      }
      const Node node = node_of(level, at.next);
      if (at.next > 0 && !rises(node, Bound::kAtLeast)) {
        return fail(PageFault::kOrder, at.page);
      }
      ++at.next;
      if (!enter(node.child(), level + 1)) return false;
      if (level + 2 < depth_) ++level;
    }
    return compare_counts(record);
  }

  // All named trees that the main one has.
  bool named() {
    for (std::size_t i = 0; i < named_.size(); ++i) {
      const Record record(named_[i].data());
      if (record.flags != 0 || record.pad != 0) return fail(PageFault::kMeta, 0);
      if (!tree(record, Tree::kNamed)) return false;
    }
    return true;
  }

  std::uint64_t last_free_key() const { return free_key_; }
  bool counts_agree() const { return counts_agree_; }
  std::uint64_t uncounted_root() const { return uncounted_root_; }

  // The first page that is neither in use nor free.
  std::optional<std::uint64_t> lost() const {
    for (std::uint64_t page = 0; page < pages_;) {
      const std::uint64_t word = ~taken_[page / 64] >> (page % 64);
      if (word == 0) {
        page = (page / 64 + 1) * 64;
        continue;
      }
      page += static_cast<std::uint64_t>(std::countr_zero(word));
      if (page < pages_) return page;
    }
    return std::nullopt;
  }

  PageReport report;

 private:
  enum class Bound { kNothing, kAbove, kAtLeast };
  struct Place {
    std::uint64_t page;
    std::size_t next, count;
  };

  bool fail(PageFault fault, std::uint64_t page) {
    report.fault = fault;
    report.page = page;
    return false;
  }

  bool take(std::uint64_t page, std::uint64_t parent) {
    if (page >= pages_ || page < 2) return fail(PageFault::kRange, parent);
    std::uint64_t& word = taken_[page / 64];
    const std::uint64_t bit = std::uint64_t{1} << (page % 64);
    if (word & bit) return fail(PageFault::kTwice, page);
    word |= bit;
    return true;
  }

  const std::uint8_t* frame(std::size_t level) const { return frames_.data() + level * page_bytes_; }

  Node node_of(std::size_t level, std::size_t number) const {
    const std::uint8_t* const page = frame(level);
    return Node(page + load<std::uint16_t>(page + kHeaderBytes + 2 * number));
  }

  // Copies a page, checks all of it, and of a leaf its entries, too.
  bool enter(std::uint64_t page, std::size_t level) {
    if (!take(page, level == 0 ? 0 : places_[level - 1].page)) return false;
    if (frames_.size() < (level + 1) * page_bytes_) frames_.resize((level + 1) * page_bytes_);
    std::uint8_t* const own = frames_.data() + level * page_bytes_;
    std::memcpy(own, file_.data() + page * page_bytes_, page_bytes_);
    ++report.pages;
    const bool leaf = level + 1 == depth_;
    if (load<std::uint64_t>(own) != page ||
        load<std::uint16_t>(own + 10) != (leaf ? kLeaf : kBranch)) {
      return fail(PageFault::kHeader, page);
    }
    std::size_t count = 0;
    if (!layout(page, own, leaf, count)) return false;
    places_[level] = {page, 0, count};
    ++counts_[leaf ? 1 : 0];
    if (!leaf) return true;
    counts_[3] += count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!entry(page, node_of(level, i))) return false;
    }
    return true;
  }

  // Nodes fill the page from `upper` to its end, each where one of the places says.
  bool layout(std::uint64_t page, const std::uint8_t* own, bool leaf, std::size_t& count) {
    const std::size_t lower = load<std::uint16_t>(own + 12), upper = load<std::uint16_t>(own + 14);
    if (lower < kHeaderBytes || lower % 2 || upper % 2 || lower > upper || upper > page_bytes_) {
      return fail(PageFault::kLayout, page);
    }
    count = (lower - kHeaderBytes) / 2;
    // A search of a branch of one child ends in an assertion of the engine, but in the free list.
    const std::size_t fewest = leaf ? 1 : 2;
    if (count < fewest && (kind_ != Tree::kFree || (!leaf && count == 0))) {
      return fail(PageFault::kLayout, page);
    }
    std::ranges::fill(sizes_, std::uint16_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = load<std::uint16_t>(own + kHeaderBytes + 2 * i);
      if (at < upper || at % 2 || at + kNodeBytes > page_bytes_) {
        return fail(PageFault::kLayout, page);
      }
      const Node node(own + at);
      if (node.key_bytes > kMaxKeyBytes || (node.key_bytes == 0 && (leaf || i > 0)) ||
          (kind_ == Tree::kFree && node.key_bytes != 8 && (leaf || i > 0))) {
        return fail(PageFault::kKey, page);
      }
      std::size_t size = kNodeBytes + node.key_bytes;
      if (leaf) {
        if (node.flags != 0 && node.flags != kBig && node.flags != kDatabase) {
          return fail(PageFault::kValue, page);
        }
        size += node.flags == kBig ? sizeof(std::uint64_t) : node.size;
        if (size > largest_node_) return fail(PageFault::kValue, page);
      }
      size += size % 2;
      if (at + size > page_bytes_ || sizes_[at / 2] != 0) return fail(PageFault::kLayout, page);
      sizes_[at / 2] = static_cast<std::uint16_t>(size);
    }
    std::size_t filled = 0;
    for (std::size_t at = upper; at < page_bytes_; at += sizes_[at / 2], ++filled) {
      if (sizes_[at / 2] == 0) return fail(PageFault::kLayout, page);
    }
    return filled == count || fail(PageFault::kLayout, page);
  }

  // Whether a key is above all before it; then it, or all from it on, is the bound of the next.
  bool rises(const Node& node, Bound next) {
    if (bound_ != Bound::kNothing) {
      const int order = compare(node);
      if (order < 0 || (order == 0 && (bound_ == Bound::kAbove || next == Bound::kAtLeast))) {
        return false;
      }
    }
    std::memcpy(low_.data(), node.key, node.key_bytes);
    low_bytes_ = node.key_bytes;
    bound_ = next;
    return true;
  }

  int compare(const Node& node) const {
    if (kind_ == Tree::kFree) {
      const auto mine = load<std::uint64_t>(node.key), before = load<std::uint64_t>(low_.data());
      return mine < before ? -1 : mine > before;
    }
    const std::size_t common = std::min<std::size_t>(node.key_bytes, low_bytes_);
    const int order = std::memcmp(node.key, low_.data(), common);
    if (order != 0) return order;
    return node.key_bytes < low_bytes_ ? -1 : node.key_bytes > low_bytes_;
  }

  bool entry(std::uint64_t page, const Node& node) {
    if (!rises(node, Bound::kAbove)) return fail(PageFault::kOrder, page);
    const std::uint8_t* value = node.value;
    if (node.flags == kBig) {
      value = overflow(page, node);
      if (value == nullptr) return false;
    }
    if (kind_ == Tree::kFree) {
      free_key_ = load<std::uint64_t>(node.key);
      if (node.flags == kDatabase) return fail(PageFault::kValue, page);
      return free_pages(page, node, value);
    }
    if (node.flags == kDatabase) {
      if (kind_ != Tree::kMain || node.size != kRecordBytes) return fail(PageFault::kValue, page);
      std::memcpy(named_.emplace_back().data(), value, kRecordBytes);
    }
    return true;
  }

  // The bytes of a value in an overflow run, or null. A run may be longer than its value: one that
  // was made shorter within its transaction keeps its pages.
  const std::uint8_t* overflow(std::uint64_t page, const Node& node) {
    const auto first = load<std::uint64_t>(node.value);
    if (!take(first, page)) return nullptr;
    std::array<std::uint8_t, kHeaderBytes> header;
    const std::uint8_t* const start = file_.data() + first * page_bytes_;
    std::memcpy(header.data(), start, kHeaderBytes);
    if (load<std::uint64_t>(header.data()) != first ||
        load<std::uint16_t>(header.data() + 10) != kOverflow) {
      fail(PageFault::kHeader, first);
      return nullptr;
    }
    const std::uint64_t run = load<std::uint32_t>(header.data() + 12);
    const std::uint64_t needed = (kHeaderBytes - 1 + std::uint64_t{node.size}) / page_bytes_ + 1;
    if (run < needed || run > pages_ - first) {
      fail(PageFault::kValue, first);
      return nullptr;
    }
    for (std::uint64_t more = first + 1; more < first + run; ++more) {
      if (!take(more, page)) return nullptr;
    }
    counts_[2] += run;
    return start + kHeaderBytes;
  }

  // A count, then so many page numbers, each below the one before.
  bool free_pages(std::uint64_t page, const Node& node, const std::uint8_t* value) {
    if (node.size % 8 || node.size < 8) return fail(PageFault::kFreeList, page);
    const auto count = load<std::uint64_t>(value);
    if (count > node.size / 8 - 1) return fail(PageFault::kFreeList, page);
    std::uint64_t before = pages_;
    for (std::uint64_t i = 1; i <= count; ++i) {
      const auto number = load<std::uint64_t>(value + 8 * i);
      if (number >= before) return fail(PageFault::kFreeList, page);
      if (!take(number, page)) return false;
      before = number;
    }
    return true;
  }

  bool compare_counts(const Record& record) {
    const std::array<std::uint64_t, 4> said{record.branches, record.leaves, record.overflows,
                                            record.entries};
    if (counts_agree_ && said != counts_) {
      counts_agree_ = false;
      uncounted_root_ = record.root == kNoPage ? 0 : record.root;
    }
    return true;
  }

  std::span<const std::uint8_t> file_;
  std::size_t page_bytes_;
  std::uint64_t pages_;
  std::vector<std::uint64_t> taken_;    // a bit a page: in use, or free
  std::vector<std::uint16_t> sizes_;    // of the node at each even place of a page
  std::size_t largest_node_;
  std::vector<std::uint8_t> frames_;    // the page at each level
  std::array<Place, kMaxDepth> places_{};
  std::array<std::uint8_t, kMaxKeyBytes> low_{};
  std::size_t low_bytes_ = 0;
  Bound bound_ = Bound::kNothing;
  Tree kind_ = Tree::kFree;
  std::size_t depth_ = 0;
  std::array<std::uint64_t, 4> counts_{};  // branches, leaves, overflow pages, entries
  bool counts_agree_ = true;
  std::uint64_t uncounted_root_ = 0, free_key_ = 0;
  std::vector<std::array<std::uint8_t, kRecordBytes>> named_;
};

}  // namespace

PageReport check_pages(std::span<const std::uint8_t> file, std::span<const std::uint8_t> meta,
                       bool exact) {
  const PageReport bad_meta{PageFault::kMeta, 0, 0};
  if (meta.size() < kMetaBytes) return bad_meta;
  const Record free_list(meta.data() + 40), main(meta.data() + 88);
  const auto last = load<std::uint64_t>(meta.data() + 136);
  const auto commit = load<std::uint64_t>(meta.data() + 144);
  const std::size_t page_bytes = free_list.pad;
  if (!std::has_single_bit(page_bytes) || page_bytes < kMinPageBytes ||
      page_bytes > kMaxPageBytes || last < 1 || last >= file.size() / page_bytes ||
      free_list.flags != kIntegerKeys || main.flags != 0 || main.pad != 0) {
    return bad_meta;
  }
  Walk walk(file, page_bytes, last + 1);
  if (!walk.tree(free_list, Tree::kFree)) return walk.report;
  // The first commit has nothing to free; every later one frees at least the root before it.
  if (walk.last_free_key() != (commit < 2 ? 0 : commit)) {
    walk.report.fault = PageFault::kCommit;
    return walk.report;
  }
  if (!walk.tree(main, Tree::kMain) || !walk.named() || !exact) return walk.report;
  if (!walk.counts_agree()) {
    walk.report.fault = PageFault::kCounts;
    walk.report.page = walk.uncounted_root();
  } else if (const auto lost = walk.lost()) {
    walk.report.fault = PageFault::kLost;
    walk.report.page = *lost;
  }
  return walk.report;
}

}  // namespace simindex
