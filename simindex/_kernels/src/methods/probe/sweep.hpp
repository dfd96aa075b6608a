// PSM for large batches: all probes are partitioned by header prefix, then the table is swept once in
// order, [PSM] section 5.
//
//     queries -> VOSH masks -> probes (word, place, number) -> partition of the place's top bits
//     partition 0: its slice of the directory and of the rows, its probes
//     partition 1: ...
//
// A slice of about kSliceBytes of rows fits the second-level cache with its part of the directory, so a
// probe costs cache accesses where psm (probe.hpp) waits for memory and address translation. The
// price is that every probe is written and read once, 16 bytes each way.
//
//     group    16 probes: words (16,), places (16,), query numbers (16,); 4 cache lines
//     chunk    16 groups; the chunks of a partition form a list, so a partition may hold any share of
//              all probes, and the number of chunks is bounded by probes / 256 + partitions, times
//              kinds of entries where flips within a partition share one
//
// A batch is cut into sub-batches whose probes take at most kProbeBytes, and each sub-batch sweeps on
// its own. Every offset is bounded as in probe.hpp. Memory for probes is kept between calls; see
// ChunkMemory.
//
// What bounds it (Xeon with AVX-512 at 2.6 GHz, 60 M uniform rows in huge pages, t = 23, k = 15,
// h = 3, 1 M queries, CPU time of one thread on a busy machine): 330 to 360 ns a query where psm takes
// 650 to 700. About 150 are the first pass, half of it VOSH and half the writing of 16 probes; 180
// the second, of which some 50 ns (54 ms a sweep, whatever the batch) are the table itself coming
// from memory. A slice of 256 KB was best; 512 KB took 20 ns more, 1 MB 150. Asking for all of the
// next slice in order, instead of for each probe's lines, took 20 ns more. Chunks must be asked for
// ahead: the processor does not foresee the jump from one to the next, which took 50 ns.
#pragma once

#include <cstddef>

#include "methods/probe/probe.hpp"
#include "methods/probe/probe_groups.hpp"

namespace simindex {

inline constexpr std::size_t kProbeBytes = std::size_t{256} << 20;

// The queries of a batch that are looked up: all `count`, or those of the `numbers` given.
struct Chosen {
  const std::uint64_t* queries;  // (m, words)
  const std::uint32_t* numbers;  // (count,) or null
  std::size_t count;

  std::uint32_t number(std::size_t i) const {
    return numbers == nullptr ? static_cast<std::uint32_t>(i) : numbers[i];
  }
};

// The probes of a batch in the order of a table's partitions. Fingerprints of a table above 0.25 MB
// stand in several.
struct Partitioned {
  // `table` has 1 .. 32 header bits; `entries` is how many probes there will be; their memory is kept
  // for later calls unless `keep` is false.
  Partitioned(const Table& table, std::size_t entries, bool keep);

  std::size_t partitions() const;
  void finish(std::size_t added) {
    probes.finish();
    size = added;
  }

  // Adds probes, by places that stand for the upper half of a word 0.
  struct Adder {
    explicit Adder(Partitioned& batch)
        : probes(batch.probes), right(32 - batch.header_bits),
          left(batch.directory_bits - batch.header_bits) {}

    std::uint32_t place(std::uint32_t upper) const { return upper >> right << left; }

    SIMINDEX_INLINE void operator()(const std::uint64_t* word, const std::uint32_t* place,
                                    const std::uint32_t* number, std::size_t count) {
      if (count == kGroup) return probes.add_all(word, place, number);
      for (std::size_t i = 0; i < count; ++i) probes.add(word[i], place[i], number[i]);
    }

    Probes& probes;
    int right;
    int left;
  };

  std::size_t words;
  int directory_bits;
  int header_bits;
  Probes probes;
  std::size_t size = 0;
};

// Adds the headers of plan.flips flip sets for each chosen query, and its `own`; `weights` (m, plan.bits),
// `plan` networked.
void partition_psm(const Chosen& chosen, const Vosh& plan, const float* weights, bool own, int level,
                   Partitioned& batch);

// Adds each chosen query's own header.
void partition_headers(const Chosen& chosen, Partitioned& batch);

// The matches of probes in partitions begin .. end-1, in no order that means anything.
Found sweep_partitioned(const Table& table, const Search& search, const Partitioned& batch,
                        std::size_t begin, std::size_t end, const std::uint8_t* skip, int level);

// What `probe_into` finds with flip masks for all queries (k,), in no order either; `probe_into` itself in
// `first` mode, where the headers have no bit, and where k is 0.
template <class Sink>
Counts swept_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out);

}  // namespace simindex
