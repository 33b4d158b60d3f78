// Activations and results lie row by row, batch by batch.
fn line_of(b: u32, row: u32) -> u32 { return b * p.x_batch + row * p.k; }
fn out_at(b: u32, row: u32, column: u32) -> u32 { return (b * p.m + row) * p.width + column; }
