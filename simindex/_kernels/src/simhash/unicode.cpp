#include "simhash/unicode.hpp"

namespace simindex {
namespace {

#include "simhash/unicode_tables.inc"

}  // namespace

const CodePoint& kind_of(std::uint32_t code_point) {
  return kKinds[kKindOf[kBlockOf[code_point / 128]][code_point % 128]];
}

const std::uint32_t* expansion_of(const CodePoint& kind) { return kExpansions[kind.delta]; }

const char* words_version() { return kWordsVersion; }

const char* folding_version() { return kFoldingVersion; }

}  // namespace simindex
