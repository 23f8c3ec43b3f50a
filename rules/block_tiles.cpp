#include "rules/block_tiles.hpp"

#include <algorithm>
#include <map>

#include "nest/term/axis.hpp"

namespace loopegg {
namespace {

std::int64_t largest_divisor(std::int64_t n, std::int64_t at_most) {
    for (std::int64_t d = std::min(n, at_most); d > 1; --d)
        if (n % d == 0) return d;
    return 1;
}

// A loop of the nest: what it walks, and whose digit that is ("" for a diagonal).
struct Piece {
    Term axis;
    std::int64_t extent = 1;
    std::string iterator;
    bool output = true;
};

std::vector<Piece> pieces_of(const NaiveLoops& nest) {
    std::vector<Piece> all;
    for (const NaiveLoop& l : nest.loops) {
        const std::vector<Term> walked = iterators_of(l.axis);
        all.push_back({l.axis, l.extent, walked.size() == 1 ? axis_name(walked[0])->name : "", !l.reduction});
    }
    return all;
}

// By the iterator they walk. An iterator cut into several digits plays its role with the last of them; the others go outside.
struct Roles {
    std::vector<Piece> outer, summed;
    std::map<std::string, Piece> of;

    explicit Roles(const std::vector<Piece>& all) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Piece& p = all[i];
            const bool last = !p.iterator.empty() && std::none_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), [&](const Piece& q) { return q.iterator == p.iterator; });
            if (last) of[p.iterator] = p;
            else (p.output ? outer : summed).push_back(p);
        }
    }
    Piece get(const std::string& name) const {
        const auto found = of.find(name);
        return found == of.end() ? Piece{Term(), 1, name, true} : found->second;
    }
};

void blocks_of(std::vector<Term>& out, const Piece& p, std::int64_t size) {
    if (p.extent <= 1 || size >= p.extent) return;
    out.push_back(size <= 1 ? p.axis : Term("quo", {p.axis, Term(size)}));
}
void inside(std::vector<Term>& out, const Piece& p, std::int64_t size) {
    if (p.extent <= 1 || size <= 1) return;
    out.push_back(size >= p.extent ? p.axis : Term("rem", {p.axis, Term(size)}));
}
// What is inside a block of `p`, as a piece that can be cut again.
Piece block_piece(const Piece& p, std::int64_t size) {
    std::vector<Term> axis;
    inside(axis, p, size);
    return {axis.empty() ? Term() : axis[0], axis.empty() ? 1 : std::min(size, p.extent), p.iterator, p.output};
}

std::int64_t number(const Statement& s, std::size_t i) { return plain_statement(s.term)[i].integer().value_or(1); }

std::optional<std::vector<Term>> part_of_shared(const NaiveLoops& nest, const Term& tile, std::string_view part) {
    const Roles r(pieces_of(nest));
    const auto size = [&](std::size_t i) { return *tile[i].integer(); };
    const Piece co = r.get("co"), oh = r.get("oh"), ow = r.get("ow"), ci = r.get("ci");
    const Piece channels = block_piece(co, size(0)), rows = block_piece(oh, size(1));
    std::vector<Term> out;
    if (part == "blocks") {
        for (const Piece& p : r.outer) blocks_of(out, p, 1);
        for (const char* name : {"n", "g"}) blocks_of(out, r.get(name), 1);
        blocks_of(out, co, size(0)), blocks_of(out, oh, size(1)), blocks_of(out, ow, size(2));
    } else if (part == "outer-sums") {
        for (const Piece& p : r.summed) blocks_of(out, p, 1);
    } else if (part == "chunks") {
        blocks_of(out, ci, size(5));
    } else if (part == "channel-threads") {
        blocks_of(out, channels, size(3));
    } else if (part == "threads") {
        blocks_of(out, rows, size(4)), inside(out, ow, size(2));
    } else if (part == "chunk") {
        inside(out, ci, size(5));
    } else if (part == "window" || part == "long-window") {
        for (const char* name : {"kh", "kw"})
            if (const Piece p = r.get(name); (p.extent <= 3) == (part == "window")) blocks_of(out, p, 1);
    } else if (part == "own-channels") {
        inside(out, channels, size(3));
    } else if (part == "own-rows") {
        inside(out, rows, size(4));
    } else {
        return {};
    }
    return out;
}

std::optional<std::vector<Term>> part_of_plain(const Statement& s, const NaiveLoops& nest, const Term& tile, std::string_view part) {
    const std::int64_t threads = *tile[0].integer(), own = *tile[1].integer();
    std::vector<Piece> outputs;
    std::vector<Term> out, block, thread, owned;
    for (Piece& p : pieces_of(nest)) {
        if (!p.output) continue;
        if (own > 1 && owned.empty() && p.iterator == "co" && p.extent % own == 0) {   // output channels share the input that a thread reads
            inside(owned, p, own);
            std::vector<Term> rest;
            blocks_of(rest, p, own);
            p = {rest.empty() ? Term() : rest[0], p.extent / own, p.iterator, true};
        }
        if (p.extent > 1) outputs.push_back(p);
    }
    std::int64_t taken = 1;
    for (auto it = outputs.rbegin(); it != outputs.rend(); ++it) {
        const std::int64_t k = largest_divisor(it->extent, std::max<std::int64_t>(1, threads / taken));
        std::vector<Term> in, around;
        inside(in, *it, k), blocks_of(around, *it, k);
        if (!in.empty()) thread.insert(thread.begin(), in[0]), taken *= k;
        if (!around.empty()) block.insert(block.begin(), around[0]);
    }
    if (part == "blocks") return block;
    if (part == "threads") return thread;
    if (part == "own") return owned;
    if (part != "sums" && part != "window") return {};
    for (const Piece& p : pieces_of(nest)) {
        if (p.output) continue;
        const bool window = p.extent <= 3 && !p.iterator.empty() && p.iterator[0] == 'k' && s.combine == Combine::sum;
        if (window == (part == "window")) out.push_back(p.axis);
    }
    return out;
}

}  // namespace

// A multiprocessor without a block is idle and one with few threads waits for memory. So where outputs are few (late layers, parts of outputs), blocks become
// smaller until there is one for each, and a thread has one output; then longer chunks keep more loads in flight. Not where the nest is one of several: blocks
// do these one after the other, and a part with fewer blocks than the widest does without shared tiles (lower_nest.cpp).
std::optional<Term> shared_tile(const Statement& s, const NaiveLoops& nest, const VectorMachine& m, bool part) {
    if (plain_statement(s.term).op().text() != "conv2d" || !s.buffers[0].blocking.empty()) return {};
    const Roles r(pieces_of(nest));
    const Piece n = r.get("n"), g = r.get("g"), co = r.get("co"), ci = r.get("ci"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    if (co.extent < 8 || ci.extent < 4) return {};
    const bool alone = !part;
    std::int64_t channels = largest_divisor(co.extent, 32), columns = largest_divisor(ow.extent, 16), rows = largest_divisor(oh.extent, std::max<std::int64_t>(1, 64 / columns));
    std::int64_t outside = n.extent * g.extent * (ow.extent / columns);
    for (const Piece& p : r.outer) outside *= p.extent;
    const auto blocks = [&] { return outside * (co.extent / channels) * (oh.extent / rows); };
    const auto shrink = [&](std::int64_t& size, const Piece& of, std::int64_t least, std::int64_t wanted) {
        while (size > least && blocks() < wanted) size = largest_divisor(of.extent, size - 1);
    };
    shrink(channels, co, 8, 2 * m.cores);
    if (alone) shrink(rows, oh, 1, m.cores), shrink(channels, co, 4, m.cores);
    std::int64_t own_channels = largest_divisor(channels, channels >= 16 ? 4 : 2), own_rows = largest_divisor(rows, 2);
    const auto threads = [&] { return channels * rows * columns / (own_channels * own_rows); };
    constexpr std::int64_t enough = 128, most_shared = 40000;
    if (alone && threads() < enough) own_rows = 1;
    while (alone && own_channels > 1 && threads() < enough) own_channels = largest_divisor(channels, own_channels - 1);
    std::int64_t chunk = 1;
    const auto shared_bytes = [&] {
        const std::int64_t input = ((rows - 1) * number(s, 8) + kh.extent) * ((columns - 1) * number(s, 9) + kw.extent);
        return 4 * chunk * (input + channels * kh.extent * kw.extent);
    };
    const bool point = kh.extent * kw.extent == 1;
    chunk = largest_divisor(ci.extent, (alone && blocks() <= 2 * m.cores ? 16 : 8) * (point ? 2 : 1));
    while (chunk > 1 && shared_bytes() > most_shared) chunk = largest_divisor(ci.extent, chunk - 1);
    if (shared_bytes() > most_shared) return {};
    return Term("shared-tile", {Term(channels), Term(rows), Term(columns), Term(own_channels), Term(own_rows), Term(chunk)});
}

// A few outputs of a thread in registers; where outputs are few, one of each, in smaller blocks.
Term plain_tile(const Statement& s, const NaiveLoops& nest, const VectorMachine& m) {
    std::int64_t elements = 1;
    bool fours = false;
    for (const Piece& p : pieces_of(nest))
        if (p.output) elements *= p.extent, fours = fours || (p.iterator == "co" && p.extent % 4 == 0);
    const bool many = elements >= 4 * 128 * static_cast<std::int64_t>(m.cores);
    const std::int64_t threads = many ? 128 : std::clamp<std::int64_t>(elements / m.cores, 32, 128);
    return Term("plain-tile", {Term(threads), Term(std::int64_t{many && fours && s.combine != Combine::assign ? 4 : 1})});
}

std::optional<std::vector<Term>> part_of_block(const Statement& s, const NaiveLoops& nest, const Term& tile, std::string_view part) {
    if (std::any_of(tile.children().begin(), tile.children().end(), [](const Term& t) { return !t.integer() || *t.integer() < 1; })) return {};
    if (tile.is("shared-tile", 6)) return part_of_shared(nest, tile, part);
    if (tile.is("plain-tile", 2)) return part_of_plain(s, nest, tile, part);
    return {};
}

}  // namespace loopegg
