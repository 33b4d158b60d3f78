// The share of one invocation, four neighbours at a time: elements lie side by side, a multiple of four of them.
fn share(base: u32, o: u32, member: u32) -> Acc {
    var sum = start(T(load4_x(base / 4u).x));
    for (var k = member; k < p.length / 4u; k += TEAM) {
        let v = vec4<T>(load4_x(base / 4u + k));
        for (var e = 0u; e < 4u; e++) { sum = take(sum, v[e], 4u * k + e); } // unroll
    }
    return sum;
}
