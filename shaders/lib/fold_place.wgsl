// The first position of the element that beats all others.
struct Acc { v: T, k: u32 }
fn start(v: T) -> Acc { return Acc(v, 0u); }
fn take(a: Acc, v: T, k: u32) -> Acc { return combine(a, Acc(v, k)); }
fn combine(a: Acc, b: Acc) -> Acc {
    if (beats(b.v, a.v) || (!beats(a.v, b.v) && b.k < a.k)) { return b; }
    return a;
}
