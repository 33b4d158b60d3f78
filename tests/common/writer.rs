//! Writes the payload format: the opposite of `src/payload`, from the same generated schema.

use executorch_webgpu::graph::DType;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

#[allow(
    unused_imports,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    mismatched_lifetime_syntaxes,
    deprecated,
    unsafe_op_in_unsafe_fn
)]
#[path = "../../schema/vulkan_payload_generated.rs"]
mod schema;
use schema::vkgraph as vk;

/// A value id.
pub type Id = usize;

#[derive(Clone, Debug)]
pub enum Entry {
    Null,
    Int(i64),
    Double(f64),
    Bool(bool),
    Text(String),
    Ints(Vec<i64>),
    Doubles(Vec<f64>),
    List(Vec<Id>),
    SymInt,
    Tensor { dtype: DType, dims: Vec<u32>, constant: i32 },
}

#[derive(Clone, Debug)]
pub enum Bytes {
    Named(String),
    Inline { offset: u64, length: u64 },
}

#[derive(Clone, Debug, Default)]
pub struct Payload {
    pub values: Vec<Entry>,
    pub calls: Vec<(String, Vec<Id>)>,
    pub inputs: Vec<Id>,
    pub outputs: Vec<Id>,
    pub constants: Vec<Bytes>,
    pub data: Vec<u8>,
}

impl Payload {
    pub fn write(&self) -> Vec<u8> {
        let mut b = FlatBufferBuilder::new();
        let values: Vec<_> = self.values.iter().map(|value| write_value(&mut b, value)).collect();
        let values = b.create_vector(&values);
        let calls: Vec<_> = self.calls.iter().map(|(name, args)| write_call(&mut b, name, args)).collect();
        let chain = b.create_vector(&calls);
        let constants: Vec<_> = self.constants.iter().map(|bytes| write_bytes(&mut b, bytes)).collect();
        let constants = b.create_vector(&constants);
        let inputs: Vec<u32> = self.inputs.iter().map(|&id| id as u32).collect();
        let input_ids = b.create_vector(&inputs);
        let outputs: Vec<u32> = self.outputs.iter().map(|&id| id as u32).collect();
        let output_ids = b.create_vector(&outputs);
        let graph = vk::VkGraph::create(
            &mut b,
            &vk::VkGraphArgs {
                chain: Some(chain),
                values: Some(values),
                input_ids: Some(input_ids),
                output_ids: Some(output_ids),
                constants: Some(constants),
                ..Default::default()
            },
        );
        b.finish(graph, Some("VK00"));
        wrap(b.finished_data(), &self.data)
    }
}

/// The VH00 container around a graph and inline data.
pub fn wrap(graph: &[u8], data: &[u8]) -> Vec<u8> {
    let data_offset = 32 + graph.len().next_multiple_of(16);
    let mut bytes = b"\0\0\0\0VH00".to_vec();
    bytes.extend(30u16.to_le_bytes());
    bytes.extend(32u32.to_le_bytes());
    bytes.extend((graph.len() as u32).to_le_bytes());
    bytes.extend((data_offset as u32).to_le_bytes());
    bytes.extend((data.len() as u64).to_le_bytes());
    bytes.resize(32, 0);
    bytes.extend(graph);
    bytes.resize(data_offset, 0);
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

type Builder<'a> = FlatBufferBuilder<'a>;

fn write_call<'a>(b: &mut Builder<'a>, name: &str, args: &[Id]) -> WIPOffset<vk::OperatorCall<'a>> {
    let name = b.create_string(name);
    let args: Vec<i32> = args.iter().map(|&id| id as i32).collect();
    let args = b.create_vector(&args);
    vk::OperatorCall::create(b, &vk::OperatorCallArgs { node_id: 0, name: Some(name), args: Some(args) })
}

fn write_bytes<'a>(b: &mut Builder<'a>, bytes: &Bytes) -> WIPOffset<vk::VkBytes<'a>> {
    match bytes {
        Bytes::Named(key) => {
            let named_key = Some(b.create_string(key));
            vk::VkBytes::create(b, &vk::VkBytesArgs { offset: u64::MAX, length: 0, named_key })
        }
        Bytes::Inline { offset, length } => {
            vk::VkBytes::create(b, &vk::VkBytesArgs { offset: *offset, length: *length, named_key: None })
        }
    }
}

fn write_value<'a>(b: &mut Builder<'a>, value: &Entry) -> WIPOffset<vk::VkValue<'a>> {
    use vk::GraphTypes as T;
    let (value_type, value): (T, WIPOffset<UnionWIPOffset>) = match value {
        Entry::Null => (T::Null, vk::Null::create(b, &vk::NullArgs {}).as_union_value()),
        Entry::Int(n) => (T::Int, vk::Int::create(b, &vk::IntArgs { int_val: *n }).as_union_value()),
        Entry::Double(x) => (T::Double, vk::Double::create(b, &vk::DoubleArgs { double_val: *x }).as_union_value()),
        Entry::Bool(v) => (T::Bool, vk::Bool::create(b, &vk::BoolArgs { bool_val: *v }).as_union_value()),
        Entry::Text(text) => {
            let string_val = Some(b.create_string(text));
            (T::String, vk::String::create(b, &vk::StringArgs { string_val }).as_union_value())
        }
        Entry::Ints(items) => {
            let items = Some(b.create_vector(&items.iter().map(|&n| word(n as u64)).collect::<Vec<_>>()));
            (T::IntList, vk::IntList::create(b, &vk::IntListArgs { items }).as_union_value())
        }
        Entry::Doubles(items) => {
            let items = Some(b.create_vector(&items.iter().map(|x| word(x.to_bits())).collect::<Vec<_>>()));
            (T::DoubleList, vk::DoubleList::create(b, &vk::DoubleListArgs { items }).as_union_value())
        }
        Entry::List(items) => {
            let items: Vec<i32> = items.iter().map(|&id| id as i32).collect();
            let items = Some(b.create_vector(&items));
            (T::ValueList, vk::ValueList::create(b, &vk::ValueListArgs { items }).as_union_value())
        }
        Entry::SymInt => (T::SymInt, vk::SymInt::create(b, &vk::SymIntArgs { value: 0 }).as_union_value()),
        Entry::Tensor { dtype, dims, constant } => {
            let dims = Some(b.create_vector(dims));
            let args = vk::VkTensorArgs {
                datatype: datatype(*dtype),
                dims,
                constant_id: *constant,
                mem_obj_id: -1,
                ..Default::default()
            };
            (T::VkTensor, vk::VkTensor::create(b, &args).as_union_value())
        }
    };
    vk::VkValue::create(b, &vk::VkValueArgs { value_type, value: Some(value) })
}

fn word(bits: u64) -> vk::Word64 {
    vk::Word64::new(bits as u32, (bits >> 32) as u32)
}

fn datatype(dtype: DType) -> vk::VkDataType {
    match dtype {
        DType::Bool => vk::VkDataType::BOOL,
        DType::U8 => vk::VkDataType::UINT8,
        DType::I8 => vk::VkDataType::INT8,
        DType::I32 => vk::VkDataType::INT32,
        DType::I64 => vk::VkDataType::INT64,
        DType::F16 => vk::VkDataType::FLOAT16,
        DType::F32 => vk::VkDataType::FLOAT32,
        DType::F64 => vk::VkDataType::FLOAT64,
    }
}
