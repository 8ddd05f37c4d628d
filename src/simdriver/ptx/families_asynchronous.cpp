// How barriers in memory, asynchronous copies and the instructions of clusters are decoded.
#include "decoder.hpp"

namespace ftcuda::sim::ptx {

void Decoder::mbarriers() {
    const int kind = take_one_of({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait",
                                  "try_wait", "pending_count"});
    if (kind == 8) {
        type();
        made_.d = target(operand(0));
        made_.a = source(1, Type::u64);
        return emit(pending_of_mbarrier);
    }
    if (kind < 0) unsupported();
    const bool arrives = kind == 2 || kind == 3;
    const bool expects = arrives && accept("expect_tx");
    const bool parity = kind >= 6 && accept("parity");
    if (arrives) accept("noComplete");  // a promise of the program's
    memory_modifiers();
    made_.space = space();
    if (type() != Type::b64) unsupported();
    const bool remote = made_.space == Space::cluster;  // such a barrier is told, not made or asked
    if (remote && (kind < 2 || kind >= 6)) unsupported();
    std::size_t next = 0;
    if (arrives || kind >= 6) {
        const Operand& result = operand(0);
        if (result.kind != Kind::memory) {
            made_.d = target(result);
            if (remote && made_.d.index != 0) syntax("a state of another block's barrier, which is never given");
            ++next;
        }
    }
    memory_operand(operand(next++));
    if (made_.frame_relative) unsupported();
    made_.b = made_.c = constant_row(0);
    if (kind >= 6) {
        made_.option = parity ? 1 : 0;
        made_.c = source(next, parity ? Type::u32 : Type::u64);  // behind it may stand for how long to try
        return emit(test_mbarrier);
    }
    constexpr MbarrierChange kinds[] = {MbarrierChange::init, MbarrierChange::inval,  MbarrierChange::arrive,
                                        MbarrierChange::drop, MbarrierChange::expect, MbarrierChange::complete};
    made_.option = static_cast<std::uint8_t>(kinds[kind]);
    const bool has_number = next < statement_->operands.size();
    if (kind == 0) made_.b = source(next, Type::u32);
    if (kind == 4 || kind == 5 || expects) made_.c = source(next, Type::u32);
    if (arrives) made_.b = has_number && !expects ? source(next, Type::u32) : constant_row(1);
    emit(change_mbarrier);
}

// cp.async of up to 16 bytes, cp.async.bulk without a tensor map, and what waits for them
void Decoder::asynchronous_copies() {
    if (!accept("async")) unsupported();
    if (accept("bulk")) return bulk_copies();
    if (accept("mbarrier")) {
        if (!accept("arrive")) unsupported();
        const bool counted =
            accept("noinc");  // else the arrival that is awaited is added first: nothing changes, the copies are done
        made_.space = space();
        type();
        memory_operand(operand(0));
        made_.option = static_cast<std::uint8_t>(MbarrierChange::arrive);
        made_.b = constant_row(1);
        made_.c = constant_row(0);
        return counted ? emit(change_mbarrier) : emit(nothing);
    }
    if (accept("commit_group") || accept("wait_group") || accept("wait_all")) return emit(nothing);
    memory_modifiers();
    if (!accept("shared") && !accept("shared::cta")) unsupported();
    if (!accept("global")) unsupported();
    const Operand& from = operand(1);
    if (from.kind != Kind::memory || !from.has_base || operand(2).kind != Kind::immediate) unsupported();
    memory_operand(operand(0));
    made_.d = made_.a;
    made_.a = {from.reg, false};
    made_.target = static_cast<std::uint32_t>(from.value);
    made_.count = static_cast<std::uint8_t>(operand(2).value);
    if (!is_one_of(std::to_string(made_.count), {"4", "8", "16"})) unsupported();
    made_.b = statement_->operands.size() > 3 ? source(3, Type::u32) : constant_row(made_.count);
    emit(copy_async);
}

void Decoder::bulk_copies() {
    if (accept("commit_group")) return emit(nothing);
    if (accept("wait_group")) {
        accept("read");
        return emit(nothing);
    }
    if (accept("prefetch")) {
        if (accept("tensor") && take_one_of({"1d", "2d", "3d", "4d", "5d"}) < 0) unsupported();
        drop({"L2", "global", "tile", "L2::cache_hint"});
        return emit(nothing);
    }
    if (accept("tensor")) return tile_copies();
    if (modifiers_.size() < 2) unsupported();
    const auto space_of = [this](std::string_view word) {
        const int known = index_of(word, {"global", "shared::cta", "shared::cluster"});
        if (known < 0) unsupported();
        return known == 0 ? Space::global : known == 1 ? Space::shared : Space::cluster;
    };
    made_.space = space_of(modifiers_[0]);
    made_.space2 = space_of(modifiers_[1]);
    if (made_.space2 == Space::cluster || (made_.space == Space::shared && made_.space2 == Space::shared))
        unsupported();
    modifiers_.erase(modifiers_.begin(), modifiers_.begin() + 2);
    const bool reports = accept("mbarrier::complete_tx::bytes");
    if (!reports && !accept("bulk_group")) unsupported();
    accept("L2::cache_hint");
    const auto plain = [this](const Operand& from) {  // its address and offset
        memory_operand(from);
        if (made_.frame_relative) unsupported();
        return std::pair(made_.a, made_.offset);
    };
    const auto [from, from_offset] = plain(operand(1));
    if (reports) {
        const auto [barrier, barrier_offset] = plain(operand(3));
        made_.c = barrier;
        made_.elements[0] = static_cast<std::uint32_t>(barrier_offset);
        made_.option = 1;
    }
    made_.d = plain(operand(0)).first;  // last: its offset stays
    made_.a = from;
    made_.target = static_cast<std::uint32_t>(from_offset);
    made_.b = source(2, Type::u32);
    emit(copy_bulk);
}

// cp.async.bulk.tensor of tiles, to shared memory with a barrier or from it in a group. What it says besides, such as
// im2col, gather or multicast, is left over and so refused.
void Decoder::tile_copies() {
    const int last_dimension = take_one_of({"1d", "2d", "3d", "4d", "5d"});
    if (last_dimension < 0 || modifiers_.size() < 2) unsupported();
    const bool loads = modifiers_[1] == "global";
    const std::string_view shared = modifiers_[loads ? 0 : 1];
    if (!loads && modifiers_[0] != "global") unsupported();
    if (shared != "shared::cta" && !(loads && shared == "shared::cluster")) unsupported();
    const Space space = shared == "shared::cta" ? Space::shared : Space::cluster;
    modifiers_.erase(modifiers_.begin(), modifiers_.begin() + 2);
    accept("tile");
    if (!accept(loads ? "mbarrier::complete_tx::bytes" : "bulk_group")) unsupported();
    accept("L2::cache_hint");
    if (!modifiers_.empty()) unsupported();
    const Operand& map = operand(loads ? 1 : 0);
    if (map.kind != Kind::memory || map.elements.size() != 1 || !map.has_base) unsupported();
    vector_operand(map.elements[0], false, Type::s32);
    if (made_.count != last_dimension + 1) syntax("a number of coordinates other than the rank");
    if (loads) {
        memory_operand(operand(2));
        if (made_.frame_relative) unsupported();
        made_.c = made_.a;
        made_.target = static_cast<std::uint32_t>(made_.offset);
    }
    memory_operand(operand(loads ? 0 : 1));
    if (made_.frame_relative) unsupported();
    made_.d = made_.a;  // with the offset
    made_.a = {map.reg, false};
    made_.space = space;
    made_.option = loads ? 1 : 0;
    emit(copy_tile);
}

// st.async, red.async: the barrier that is told, the third operand
void Decoder::reporting() {
    if (!accept("mbarrier::complete_tx::bytes")) unsupported();
    if (made_.space != Space::cluster && made_.space != Space::generic) unsupported();
    if (size_of(made_.type) != 4 && size_of(made_.type) != 8) unsupported();
    memory_operand(operand(2));
    if (made_.frame_relative) unsupported();
    made_.c = made_.a;
    made_.target = static_cast<std::uint32_t>(made_.offset);
}

// barrier.cluster
void Decoder::cluster_barriers() {
    const bool arrives = accept("arrive");
    if (!arrives && !accept("wait")) unsupported();
    drop({"acquire", "release", "relaxed", "aligned"});
    emit(arrives ? arrive_at_cluster : wait_for_cluster, true);
}

// mapa, getctarank
void Decoder::cluster_addresses(std::string_view base) {
    made_.space = space();
    if (made_.space != Space::cluster && made_.space != Space::generic) unsupported();
    made_.type = type();
    made_.d = target(operand(0));
    made_.a = source(1, made_.type);
    if (base == "getctarank") return emit(rank_of_address);
    made_.b = source(2, Type::u32);
    emit(map_to_block);
}

}  // namespace ftcuda::sim::ptx
