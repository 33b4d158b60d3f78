use flatbuffers::{ForwardsUOffset, Vector, VerifierOptions};

use super::header::{Sections, sections};
use super::schema::vkgraph::{self, GraphTypes};
use crate::error::{Error, Result};
use crate::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};

/// Reads a payload into a graph that [`Graph::check`] has passed.
///
/// Fails with [`Error::Payload`] when a byte range, an id, a size or a list is not sound.
pub fn parse(bytes: &[u8]) -> Result<Graph> {
    let sections = sections(bytes)?;
    let flatbuffer = bytes.get(sections.graph.clone()).unwrap_or_default();
    if flatbuffer.get(4..8) != Some(b"VK00") {
        return Err(Error::Payload("graph identifier is not \"VK00\"".into()));
    }
    // Tables and strings may be shared, but a graph that is many times larger than its bytes is an attack.
    let limits = VerifierOptions {
        max_depth: 16,
        max_tables: 10_000_000,
        max_apparent_size: 16 * flatbuffer.len(),
        ignore_missing_null_terminator: false,
    };
    let graph = flatbuffers::root_with_opts::<vkgraph::VkGraph>(&limits, flatbuffer)
        .map_err(|e| Error::Payload(format!("graph: {e}")))?;
    let graph = Graph {
        values: list(graph.values()).map(value).collect::<Result<_>>()?,
        nodes: list(graph.chain()).map(node).collect::<Result<_>>()?,
        inputs: graph.input_ids().into_iter().flatten().map(ValueId).collect(),
        outputs: graph.output_ids().into_iter().flatten().map(ValueId).collect(),
        constants: list(graph.constants()).map(|c| constant(&c, &sections)).collect::<Result<_>>()?,
    };
    if graph.nodes.is_empty() && graph.outputs.is_empty() {
        return Err(Error::Payload("the graph has neither operators nor outputs".into()));
    }
    graph.check()?;
    Ok(graph)
}

fn list<'a, T: flatbuffers::Follow<'a> + 'a>(
    items: Option<Vector<'a, ForwardsUOffset<T>>>,
) -> impl Iterator<Item = T::Inner> {
    items.into_iter().flat_map(|items| items.iter().collect::<Vec<_>>())
}

fn node(call: vkgraph::OperatorCall<'_>) -> Result<Node> {
    let op = call.name().ok_or_else(|| Error::Payload("an operator call has no name".into()))?;
    let args = call.args().into_iter().flatten().map(id).collect::<Result<Vec<_>>>()?;
    if args.is_empty() {
        return Err(Error::Payload(format!("{op} has no arguments")));
    }
    Ok(Node { op: op.to_string(), args })
}

fn id(number: i32) -> Result<ValueId> {
    u32::try_from(number).map(ValueId).map_err(|_| Error::Payload(format!("value id {number} is negative")))
}

fn bits(word: &vkgraph::Word64) -> u64 {
    u64::from(word.high()) << 32 | u64::from(word.low())
}

fn value(value: vkgraph::VkValue<'_>) -> Result<Value> {
    let missing = || Error::Payload(format!("a value of type {:?} has no content", value.value_type()));
    Ok(match value.value_type() {
        GraphTypes::Int => Value::Int(value.value_as_int().ok_or_else(missing)?.int_val()),
        GraphTypes::Double => Value::Double(value.value_as_double().ok_or_else(missing)?.double_val()),
        GraphTypes::Bool => Value::Bool(value.value_as_bool().ok_or_else(missing)?.bool_val()),
        GraphTypes::String => {
            Value::Str(value.value_as_string().ok_or_else(missing)?.string_val().unwrap_or_default().to_string())
        }
        GraphTypes::IntList => {
            let items = value.value_as_int_list().ok_or_else(missing)?.items();
            Value::Ints(items.into_iter().flatten().map(|word| bits(word).cast_signed()).collect())
        }
        GraphTypes::DoubleList => {
            let items = value.value_as_double_list().ok_or_else(missing)?.items();
            Value::Doubles(items.into_iter().flatten().map(|word| f64::from_bits(bits(word))).collect())
        }
        GraphTypes::BoolList => {
            Value::Bools(value.value_as_bool_list().ok_or_else(missing)?.items().into_iter().flatten().collect())
        }
        GraphTypes::ValueList => {
            let items = value.value_as_value_list().ok_or_else(missing)?.items();
            Value::List(items.into_iter().flatten().map(id).collect::<Result<_>>()?)
        }
        GraphTypes::SymInt => Value::SymInt,
        GraphTypes::VkTensor => Value::Tensor(tensor(value.value_as_vk_tensor().ok_or_else(missing)?)?),
        GraphTypes::Null => Value::Null,
        other => return Err(Error::Payload(format!("value type {other:?} is unknown"))),
    })
}

fn tensor(tensor: vkgraph::VkTensor<'_>) -> Result<Tensor> {
    use vkgraph::VkDataType as T;
    let dtype = match tensor.datatype() {
        T::BOOL => DType::Bool,
        T::UINT8 => DType::U8,
        T::INT8 => DType::I8,
        T::INT32 => DType::I32,
        T::INT64 => DType::I64,
        T::FLOAT16 => DType::F16,
        T::FLOAT32 => DType::F32,
        T::FLOAT64 => DType::F64,
        other => return Err(Error::Payload(format!("tensor type {other:?} is unknown"))),
    };
    let sizes: Vec<u32> = tensor.dims().into_iter().flatten().collect();
    let max = Dims::new(&sizes).map_err(|e| Error::Payload(e.to_string()))?;
    Ok(Tensor { dtype, stored: dtype, swapped: false, max, constant: u32::try_from(tensor.constant_id()).ok() })
}

fn constant(bytes: &vkgraph::VkBytes<'_>, sections: &Sections) -> Result<Constant> {
    let key = bytes.named_key().unwrap_or_default();
    if bytes.offset() == u64::MAX {
        if key.is_empty() {
            return Err(Error::Payload("a constant has neither a key nor an offset".into()));
        }
        return Ok(Constant::Named { key: key.to_string() });
    }
    let (offset, length, available) = (bytes.offset(), bytes.length(), sections.data.len() as u64);
    if offset.checked_add(length).is_none_or(|end| end > available) {
        return Err(Error::Payload(format!(
            "inline constant of {length} bytes at {offset} is outside the {available} bytes of data"
        )));
    }
    if offset == available {
        return Ok(Constant::Empty);
    }
    let (offset, available) = (offset as usize, available as usize);
    Ok(Constant::Inline { offset: sections.data.start + offset, available: available - offset })
}
