// The share of one invocation, element by element.
fn share(base: u32, o: u32, member: u32) -> Acc {
    var sum = start(T(load_x(base)));
    for (var k = member; k < p.length; k += TEAM) { sum = take(sum, T(load_x(element(base, o, k))), k); }
    return sum;
}
