// The results of a team, a power of two of them, combined in a fixed order.
var<workgroup> parts: array<Acc, WG>;
fn gather(v: Acc, lane: u32) -> Acc {
    parts[lane] = v;
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (member_of(lane) < half) { parts[lane] = combine(parts[lane], parts[lane + half * ACROSS]); }
    }
    workgroupBarrier();
    return parts[item_of(lane)];
}
