// Where result element i lies in operand k: mixed-radix digits of i over the loops p.sizes, times p.strides[k].
fn at(i: u32, k: u32) -> u32 {
    var rest = i;
    var sum = 0u;
    for (var d = p.rank; d > 0u; d--) {
        let e = d - 1u;
        let size = p.sizes[e >> 2u][e & 3u];
        sum += (rest % size) * p.strides[k][e >> 2u][e & 3u];
        rest /= size;
    }
    return sum;
}
