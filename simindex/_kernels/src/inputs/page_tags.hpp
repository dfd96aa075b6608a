// What a page of HTML has of tags that parsers take long for: counted before it is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

struct PageTags {
  // The most of any element, up to `most` + 1. So many, too, where looking at each tag would take
  // more than `kPasses` times the page, and where tags with many attributes are as much work for a
  // parser, which takes time with the square of them, as `kWork` tags with `most`.
  std::size_t attributes;
  // Elements such as <b> that are opened and not closed.
  std::size_t unclosed;
  // Elements that extraction goes down into: <div>, <article>, <ol>.
  std::size_t nested;
};

inline constexpr std::size_t kPasses = 16;
inline constexpr std::size_t kWork = 64;

// Every "<" before a letter counts as the beginning of a tag, whatever stands around it: comments,
// scripts and quotes end elsewhere for a parser than for a scanner that a page wants to mislead. So no
// tag that a parser sees is missed; text that looks like a tag counts as one.
PageTags page_tags(std::span<const std::uint8_t> page, std::size_t most);

}  // namespace simindex
