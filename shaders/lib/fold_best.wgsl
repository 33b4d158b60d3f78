// The element that beats all others.
alias Acc = T;
fn start(v: T) -> Acc { return v; }
fn take(a: Acc, v: T, k: u32) -> Acc { return select(a, v, beats(v, a)); }
fn combine(a: Acc, b: Acc) -> Acc { return select(a, b, beats(b, a)); }
