// Sum and maximum of numbers or of vectors over a team, a power of two of invocations; each of them gets the result.
var<workgroup> partial: array<Reduced, WG>;

fn reduce_add(v: Reduced, lane: u32) -> Reduced {
    partial[lane] = v;
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (member_of(lane) < half) { partial[lane] += partial[lane + half * ACROSS]; }
    }
    return team_result(lane);
}

fn reduce_max(v: Reduced, lane: u32) -> Reduced {
    partial[lane] = v;
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (member_of(lane) < half) { partial[lane] = max(partial[lane], partial[lane + half * ACROSS]); }
    }
    return team_result(lane);
}

fn team_result(lane: u32) -> Reduced {
    workgroupBarrier();
    let result = partial[item_of(lane)];
    workgroupBarrier();
    return result;
}
