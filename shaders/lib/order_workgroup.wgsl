// Invocations are counted as the workgroup does.
struct Invocation { @builtin(local_invocation_index) index: u32 }
fn index_of(i: Invocation) -> u32 { return i.index; }
