// Element [k, n] of a dense matrix.
struct Column { first: u32 }
fn column_of(b: u32, n: u32) -> Column { return Column(b * p.w_batch + n); }
fn place(column: Column, k: u32) -> u32 { return column.first + k * p.n; }
