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

#include "probe.hpp"

namespace simindex {

inline constexpr std::size_t kProbeBytes = std::size_t{256} << 20;

// What `psm` finds, in no order but that of sub-batches; in `first` mode, and where flip
// sets do not come from networks, `psm` itself. Throws std::bad_alloc.
Found psm_swept(const Table& table, const Search& search, const Vosh& plan, const float* weights,
                int level);

// What `probe_into` finds with flip masks for all queries (k,), in no order either; `probe_into` itself in
// `first` mode, where the headers have no bit, and where k is 0.
template <class Sink>
Counts swept_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out);

}  // namespace simindex
