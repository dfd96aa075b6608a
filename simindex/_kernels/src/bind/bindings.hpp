// Each idea binds its own functions; module.cpp only calls them in order.
#pragma once

#include <nanobind/nanobind.h>

namespace simindex {

void bind_bytes(nanobind::module_& m);   // crc32c, murmur3, pages of LMDB
void bind_verified(nanobind::module_& m);  // bytes compared with checksums when first touched
void bind_rows(nanobind::module_& m);    // sort, header directory, ordering of results
void bind_text(nanobind::module_& m);    // sums over features
void bind_search(nanobind::module_& m);  // probe, VOSH, scan
void bind_top(nanobind::module_& m);     // the nearest documents
void bind_lookup(nanobind::module_& m);  // header look-ups of the literature
void bind_pairs(nanobind::module_& m);   // all pairs of rows
void bind_slices(nanobind::module_& m);  // slice lists
void bind_clusters(nanobind::module_& m);  // groups of near-duplicates
void bind_issl(nanobind::module_& m);   // search of slice lists

}  // namespace simindex
