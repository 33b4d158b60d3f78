// The sum.
alias Acc = T;
fn start(v: T) -> Acc { return Acc(); }
fn take(a: Acc, v: T, k: u32) -> Acc { return a + v; }
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
