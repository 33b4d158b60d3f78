// The results of WG invocations, a power of two, combined in a fixed order.
var<workgroup> parts: array<Acc, WG>;
fn gather(v: Acc, lane: u32) -> Acc {
    parts[lane] = v;
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { parts[lane] = combine(parts[lane], parts[lane + half]); }
    }
    workgroupBarrier();
    return parts[0];
}
