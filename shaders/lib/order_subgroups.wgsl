// Invocations are counted subgroup by subgroup, whatever part of the workgroup a driver makes a subgroup of.
struct Invocation { @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32 }
fn index_of(i: Invocation) -> u32 { return i.subgroup * LANES + i.lane; }
