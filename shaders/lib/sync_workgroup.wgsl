// Invocations of a workgroup wait for each other.
fn sync() { workgroupBarrier(); }
