#include <algorithm>
#include <vector>

#include "cpu/workers.hpp"
#include "methods/issl/best_rows.hpp"
#include "methods/issl/issl.hpp"
#include "methods/issl/lists.hpp"
#include "methods/issl/row_buckets.hpp"
#include "methods/issl/scores.hpp"
#include "methods/scan/top_k.hpp"

namespace simindex {
namespace {

constexpr std::size_t kStreamRows = 4096;
constexpr std::size_t kSlab = 1024;  // rows whose scores are counted at a time

constexpr std::size_t kGroupBytes = std::size_t{32} << 20;
constexpr std::size_t kGroupQueries = 1024;

// One thread's part of top_slices.
class TopWorker {
 public:
  TopWorker(const SliceTable& table, const TopSearch& search, const Errors& errors,
            std::size_t together, std::uint64_t* ids, std::uint16_t* distances, std::uint32_t* rows)
      : table_(table), search_(search), errors_(errors), visit_{table.slices, 0},
        lists_(visit_.lists(errors)), many_(together >= kManyQueries),
        scoring_(row_scoring(search.level)), ids_(ids), distances_(distances), rows_(rows),
        buckets_(table.n, table.words, together), best_(search.rerank), listed_(table.n) {
    most_ = search.max_error == table.width ? 0 : most_followed(table, lists_);
    expected_ = lists_ * (table.n >> table.width);
  }

  // Queries begin .. end - 1.
  template <class Stopped>
  void answer(std::size_t begin, std::size_t end, Stopped stopped) {
    group_.clear();
    buckets_.clear();
    for (std::size_t q = begin; q < end && !stopped(); ++q) {
      counts.lists += lists_;
      const std::uint64_t* query = search_.queries + q * table_.words;
      std::uint64_t followed = 0;
      if (search_.rerank >= table_.n) {
        counts.scored += std::uint64_t{table_.n} * table_.slices;
        compare_all(q, query, stopped);
      } else if (most_ == 0) {
        score_rows(q, query, stopped);
      } else if (!many_ && expected_ <= search_.rerank) {
        listed_.clear();
        const Followed end_of =
            follow(table_, query, errors_, visit_, std::min<std::uint64_t>(most_, search_.rerank),
                   followed, listed_);
        counts.scored += followed;
        if (end_of == Followed::kTooMany)
          score_lists(q, query, stopped);
        else if (end_of == Followed::kDamaged)
          counts.damaged += listed_.damaged;
        else
          compare_listed(q, query);
      } else {
        score_lists(q, query, stopped);
      }
    }
    compare_group(stopped);
  }

  SliceCounts counts;

 private:
  bool dead(std::uint64_t row) const { return search_.dead != nullptr && search_.dead[row] != 0; }

  // Takes the nearest of some rows, of which the dead are left out.
  void compare(std::uint32_t* rows, std::size_t count, const std::uint64_t* query, TopK& top) {
    if (search_.dead != nullptr)
      count = static_cast<std::size_t>(
          std::remove_if(rows, rows + count, [&](std::uint32_t row) { return dead(row); }) - rows);
    compare_live(rows, count, query, top);
  }

  void compare_live(const std::uint32_t* rows, std::size_t count, const std::uint64_t* query,
                    TopK& top) {
    if (near_.size() < count) near_.resize(count);
    table_.touch_rows(rows, count);
    scoring_.distances(table_.rows, table_.words, rows, count, query, near_.data());
    for (std::size_t i = 0; i < count; ++i)
      if (near_[i] <= top.limit()) {
        table_.touch_id(rows[i]);
        top.insert(near_[i], table_.ids[rows[i]], rows[i]);
      }
    counts.compared += count;
  }

  void compare_listed(std::size_t q, const std::uint64_t* query) {
    TopK top(search_.k);
    for (std::size_t at = 0; at < listed_.size; at += kStreamRows)
      compare(listed_.rows.data() + at, std::min(kStreamRows, listed_.size - at), query, top);
    give(q, top);
  }

  // The rows of the group's queries, bucket by bucket.
  template <class Stopped>
  void compare_group(Stopped stopped) {
    std::vector<TopK> tops(group_.size(), TopK(search_.k));
    listed_.rows.reserve(buckets_.most_entries());
    for (std::size_t b = 0; b < buckets_.count() && !group_.empty(); ++b) {
      if (stopped()) return;
      for (std::size_t i = 0; i < group_.size(); ++i) {
        const std::size_t size = buckets_.rows_of(i, b, listed_.rows.data());
        compare(listed_.rows.data(), size, search_.queries + group_[i] * table_.words, tops[i]);
      }
    }
    for (std::size_t i = 0; i < group_.size(); ++i) give(group_[i], tops[i]);
    group_.clear();
    buckets_.clear();
  }

  template <class Stopped>
  void score_lists(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    std::uint64_t followed = 0;
    buckets_.begin();
    const Followed end = follow(table_, query, errors_, visit_, most_, followed, buckets_);
    counts.scored += followed;
    if (end == Followed::kAll && followed <= search_.rerank) {
      group_.push_back(q);
      buckets_.keep(followed);
      if (buckets_.bytes() > kGroupBytes) compare_group(stopped);
      return;
    }
    if (end == Followed::kAll) {
      best_.begin();
      sum_buckets();
      compare_best(q, query);
    } else if (end == Followed::kDamaged) {
      counts.damaged += buckets_.damaged;
    }
    if (end == Followed::kTooMany) score_rows(q, query, stopped);
  }

  void compare_best(std::size_t q, const std::uint64_t* query) {
    TopK top(search_.k);
    const std::uint32_t* rows = best_.end();
    compare_live(rows, best_.size, query, top);
    give(q, top);
  }

  void sum_buckets() {
    for (std::size_t b = 0; b < buckets_.count(); ++b) {
      std::uint64_t* to = best_.group(buckets_.entries(b));
      const std::uint32_t least = std::max<std::uint32_t>(best_.least, 1);
      if (search_.dead == nullptr)
        buckets_.sum(b, [&to, least](std::uint32_t row, std::uint32_t score) {
          *to = BestRows::key(row, score);
          to += score >= least;
        });
      else
        buckets_.sum(b, [&to, least, this](std::uint32_t row, std::uint32_t score) {
          *to = BestRows::key(row, score);
          to += score >= least && !dead(row);
        });
      best_.end_group(to);
    }
  }

  template <class Stopped>
  void score_rows(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    counts.scored += std::uint64_t{table_.n} * table_.slices;
    best_.begin();
    // With all errors a row that differs in every bit is listed too.
    const std::uint32_t lowest = search_.max_error == table_.width ? 0 : 1;
    for (std::size_t lo = 0; lo < table_.n; lo += kSlab) {
      if (lo % (64 * kSlab) == 0 && stopped()) return;
      const std::size_t count = std::min(kSlab, table_.n - lo);
      table_.touch_rows(lo, count);
      scoring_.scores(table_.rows + lo * table_.words, table_.words, count, query, table_.width,
                     search_.max_error, scores_);
      std::uint64_t* to = best_.group(count);
      const std::uint32_t least = std::max(best_.least, lowest);
      for (std::size_t i = 0; i < count; ++i) {
        *to = BestRows::key(static_cast<std::uint32_t>(lo + i), scores_[i]);
        to += scores_[i] >= least && !dead(lo + i);
      }
      best_.end_group(to);
    }
    compare_best(q, query);
  }

  template <class Stopped>
  void compare_all(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    TopK top(search_.k);
    listed_.rows.reserve(kSlab);
    for (std::size_t lo = 0; lo < table_.n; lo += kSlab) {
      if (lo % (64 * kSlab) == 0 && stopped()) return;
      const std::size_t count = std::min(kSlab, table_.n - lo);
      for (std::size_t i = 0; i < count; ++i)
        listed_.rows[i] = static_cast<std::uint32_t>(lo + i);
      compare(listed_.rows.data(), count, query, top);
    }
    give(q, top);
  }

  void give(std::size_t q, TopK& top) {
    std::size_t to = q * search_.k;
    for (const TopK::Entry& entry : top.sorted()) {
      ids_[to] = entry.id;
      distances_[to] = entry.distance;
      rows_[to++] = entry.row;
    }
  }

  const SliceTable& table_;
  const TopSearch& search_;
  const Errors& errors_;
  Visit visit_;
  std::size_t lists_;
  bool many_;               // queries are answered together
  std::uint64_t most_;      // row numbers followed for a query
  std::uint64_t expected_;  // if those of lists are as many
  RowScoring scoring_;
  std::uint64_t* ids_;
  std::uint16_t* distances_;
  std::uint32_t* rows_;
  RowBuckets buckets_;
  BestRows best_;
  Listed listed_;
  std::vector<std::size_t> group_;  // queries all of whose rows are to be compared
  std::vector<std::uint16_t> near_;
  std::uint16_t scores_[kSlab];
};

}  // namespace

SliceCounts top_slices(const SliceTable& table, const TopSearch& asked, std::uint64_t* ids,
                       std::uint16_t* distances, std::uint32_t* rows,
                       const std::function<bool()>& poll) {
  TopSearch search = asked;
  search.rerank = std::min(search.rerank, table.n);
  SliceCounts counts;
  std::fill_n(ids, search.m * search.k, ~std::uint64_t{0});
  std::fill_n(distances, search.m * search.k, static_cast<std::uint16_t>(64 * table.words + 1));
  std::fill_n(rows, search.m * search.k, ~std::uint32_t{0});
  if (table.n == 0 || search.m == 0) return counts;
  const Errors errors(table.width, search.max_error);
  const std::size_t each = std::clamp<std::size_t>(
      (search.m + search.threads - 1) / search.threads, 1, kGroupQueries);
  split(
      (search.m + each - 1) / each, search.threads,
      [&] { return TopWorker(table, search, errors, each, ids, distances, rows); },
      [&](TopWorker& worker, std::size_t i, auto stopped) {
        worker.answer(i * each, std::min((i + 1) * each, search.m), stopped);
      },
      [&](TopWorker& worker) {
        counts.lists += worker.counts.lists;
        counts.scored += worker.counts.scored;
        counts.compared += worker.counts.compared;
        counts.damaged += worker.counts.damaged;
      },
      [&] { return counts.stopped = counts.stopped || poll(); });
  return counts;
}

}  // namespace simindex
