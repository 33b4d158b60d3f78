use std::collections::HashMap;
use std::sync::OnceLock;

use super::{
    Op, attention, binary, cast, conv_q8, convolution, elementwise_q8, embedding_q4, fill, join, linear, linear_q8,
    norm, pool, qparams, quantize, reduce, reindex, rope, sample, softmax, symbolic, take, training, unary, view,
};

/// The families. A family that stands here is registered.
pub const TABLE: &[&[Op]] = &[
    symbolic::OPS,
    linear::OPS,
    convolution::OPS,
    attention::OPS,
    rope::OPS,
    unary::OPS,
    unary::FLOATING,
    unary::LOGICAL,
    binary::OPS,
    binary::FLOATING,
    binary::LOGICAL,
    binary::BITWISE,
    binary::SELECT,
    reindex::OPS,
    join::OPS,
    view::OPS,
    cast::OPS,
    fill::OPS,
    norm::OPS,
    pool::OPS,
    sample::OPS,
    softmax::OPS,
    reduce::OPS,
    take::OPS,
    embedding_q4::OPS,
    quantize::OPS,
    qparams::OPS,
    linear_q8::OPS,
    conv_q8::OPS,
    elementwise_q8::OPS,
    training::OPS,
];

/// Families of operators that passes put in the place of groups of nodes, and name after them. No payload may name them.
pub const INTERNAL: &[&[Op]] = &[linear::INTERNAL, attention::INTERNAL, binary::INTERNAL];

fn all() -> impl Iterator<Item = &'static Op> {
    TABLE.iter().chain(INTERNAL).flat_map(|family| family.iter())
}

/// The row of an operator, of a payload or internal.
pub fn find(name: &str) -> Option<&'static Op> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Op>> = OnceLock::new();
    let index = INDEX.get_or_init(|| all().map(|op| (op.name, op)).collect());
    index.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().map(|op| op.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
