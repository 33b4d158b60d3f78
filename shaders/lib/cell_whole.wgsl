// Cells that are whole elements of the arrays.
fn cell(i: u32) -> Cell { return x[source(i)]; }
