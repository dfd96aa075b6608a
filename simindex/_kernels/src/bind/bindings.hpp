// Each idea binds its own functions; module.cpp only calls them in order.
//
// noconvert: an array of another type or order is an error, never a silent copy of a table.
#pragma once

#include <nanobind/nanobind.h>

namespace simindex {

void bind_bytes(nanobind::module_& m);   // crc32c, murmur3, pages of LMDB
void bind_verified(nanobind::module_& m);  // bytes compared with checksums when first touched
void bind_rows(nanobind::module_& m);    // sort, header directory, ordering of results
void bind_text(nanobind::module_& m);    // sums over features
void bind_vosh(nanobind::module_& m);    // bits that are flipped
void bind_probe(nanobind::module_& m);   // buckets of a sorted table
void bind_sweep(nanobind::module_& m);   // a sorted table, partition by partition
void bind_bphs(nanobind::module_& m);    // permuted tables
void bind_scan(nanobind::module_& m);    // all rows: within h, and the nearest
void bind_arriving(nanobind::module_& m);  // what a document that comes by itself is compared with
void bind_lookup(nanobind::module_& m);  // header look-ups of the literature
void bind_pairs(nanobind::module_& m);   // all pairs of rows
void bind_slices(nanobind::module_& m);  // slice lists
void bind_clusters(nanobind::module_& m);  // groups of near-duplicates
void bind_issl(nanobind::module_& m);   // search of slice lists
void bind_arrow(nanobind::module_& m);  // columns for other libraries
void bind_inputs(nanobind::module_& m);  // what a page of HTML has of tags

}  // namespace simindex
