// The pages of a file of LMDB's format 1, looked at before its engine follows them.
//
//   page      number u8 | pad u2 | flags u2 | lower u2, upper u2 (an overflow run: pages u4) | body
//   body      places of nodes u2 (lower - 16) / 2 | free space | nodes, from upper to the page's end
//   node      low u2, high u2 | flags u2 | key bytes u2 | key | value, or where its overflow run is
//   meta      the commit's number, its last page, the records of the free list and of the main tree
//
// The engine believes what stands there: a node beyond its page, a page that is used twice or is
// free and in use ends in a signal, or in a writer that overwrites what is live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// In the order of the sentences in storage/catalog/pages.py.
enum class PageFault : int {
  kNone,
  kMeta,       // a page size, a last page or a record that no commit has
  kRange,      // a page number that the file does not have
  kTwice,      // a page that two parents have, or that is free and in use
  kHeader,     // another page number, or another kind, than its parent says
  kLayout,     // nodes that do not fill the page from `upper` on, one after the other
  kKey,        // a key of no possible size
  kOrder,      // keys that do not rise, or that are not between those of their parent
  kValue,      // a value of no possible size or kind
  kFreeList,   // a list of free pages that is longer than its record, or does not fall
  kCommit,     // a free list that was not written by the commit the meta page names
  kCounts,     // a record that counts other pages and entries than its tree has
  kLost,       // pages that are neither in use nor free
};

struct PageReport {
  PageFault fault = PageFault::kNone;
  std::uint64_t page = 0;  // where; 0 for a fault of the meta page
  std::uint64_t pages = 0;  // pages of trees that were read, headers of overflow runs not counted
};

// The first fault of the commit that a meta page (152 bytes from its page's beginning on) names, in
// the file of which `file` holds at least the pages up to its last. Every offset is bounded, every
// page copied before it is read, no page read twice; memory is a bit a page and a page a level.
// Values in overflow runs are not read, but for lists of free pages. With `exact`, counts and lost
// pages are faults, too: they lead no reader astray, and no writer.
PageReport check_pages(std::span<const std::uint8_t> file, std::span<const std::uint8_t> meta,
                       bool exact);

}  // namespace simindex
