use std::cell::RefCell;
use std::collections::HashMap;

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::exec::{DataSource, HostTensor, HostValue, Outputs, Program};
use executorch_webgpu::gpu::{Profile, Timed};
use executorch_webgpu::graph::{DType, Dims};
use executorch_webgpu::options::Options;

use super::data::Data;
use super::writer::{Bytes, Entry, Id, Payload};

/// Builds a model value by value; every method returns the id of what it added.
#[derive(Clone, Default)]
pub struct Model {
    pub payload: Payload,
    pub named: HashMap<String, Vec<u8>>,
    /// The number of the source that the named data come from; 0 for none.
    pub source: u64,
    output_types: Vec<DType>,
}

impl Model {
    pub fn new() -> Model {
        Model::default()
    }

    pub fn add(&mut self, entry: Entry) -> Id {
        self.payload.values.push(entry);
        self.payload.values.len() - 1
    }

    pub fn null(&mut self) -> Id {
        self.add(Entry::Null)
    }

    pub fn int(&mut self, n: i64) -> Id {
        self.add(Entry::Int(n))
    }

    pub fn double(&mut self, x: f64) -> Id {
        self.add(Entry::Double(x))
    }

    pub fn boolean(&mut self, b: bool) -> Id {
        self.add(Entry::Bool(b))
    }

    pub fn text(&mut self, text: &str) -> Id {
        self.add(Entry::Text(text.into()))
    }

    pub fn ints(&mut self, items: &[i64]) -> Id {
        self.add(Entry::Ints(items.to_vec()))
    }

    pub fn list(&mut self, items: &[Id]) -> Id {
        self.add(Entry::List(items.to_vec()))
    }

    pub fn symint(&mut self) -> Id {
        self.add(Entry::SymInt)
    }

    /// A tensor that a node will define; `dims` is the bound.
    pub fn tensor(&mut self, dtype: DType, dims: &[u32]) -> Id {
        self.add(Entry::Tensor { dtype, dims: dims.to_vec(), constant: -1 })
    }

    pub fn input(&mut self, dtype: DType, dims: &[u32]) -> Id {
        let id = self.tensor(dtype, dims);
        self.payload.inputs.push(id);
        id
    }

    /// A constant in the named data; equal bytes share one key, as the exporter does it.
    pub fn constant(&mut self, data: &Data) -> Id {
        let bytes = data.bytes();
        let known = self.named.iter().find(|(_, known)| **known == bytes).map(|(key, _)| key.clone());
        let key = known.unwrap_or_else(|| format!("key{}", self.named.len()));
        self.named.insert(key.clone(), bytes);
        self.payload.constants.push(Bytes::Named(key));
        let constant = self.payload.constants.len() as i32 - 1;
        self.add(Entry::Tensor { dtype: data.dtype, dims: data.dims.clone(), constant })
    }

    /// A constant of these bytes under a key of its own.
    pub fn constant_bytes(&mut self, key: &str, dtype: DType, dims: &[u32], bytes: Vec<u8>) -> Id {
        self.named.insert(key.into(), bytes);
        self.payload.constants.push(Bytes::Named(key.into()));
        let constant = self.payload.constants.len() as i32 - 1;
        self.add(Entry::Tensor { dtype, dims: dims.to_vec(), constant })
    }

    pub fn op(&mut self, name: &str, args: &[Id]) {
        self.payload.calls.push((name.into(), args.to_vec()));
    }

    /// The same model without outputs.
    pub fn without_outputs(mut self) -> Model {
        self.payload.outputs.clear();
        self.output_types.clear();
        self
    }

    /// Makes a value an output; its host type is the tensor's own.
    pub fn output(&mut self, id: Id) {
        let dtype = match self.payload.values[id] {
            Entry::Tensor { dtype, .. } => dtype,
            _ => DType::I64,
        };
        self.payload.outputs.push(id);
        self.output_types.push(dtype);
    }

    /// `inputs -> op(inputs.., args..) -> one output of this type and bound`.
    pub fn single(op: &str, inputs: &[&Data], args: &[Entry], dtype: DType, dims: &[u32]) -> Model {
        let mut m = Model::new();
        let mut ids: Vec<Id> = inputs.iter().map(|x| m.input(x.dtype, &x.dims)).collect();
        ids.extend(args.iter().map(|entry| m.add(entry.clone())).collect::<Vec<_>>());
        let out = m.tensor(dtype, dims);
        ids.push(out);
        m.op(op, &ids);
        m.output(out);
        m
    }

    pub fn load(&self) -> Result<Running> {
        self.load_with(Options::default(), Profile::Full)
    }

    pub fn load_with(&self, options: Options, profile: Profile) -> Result<Running> {
        let program = Program::load_with(&self.payload.write(), self, options, profile)?;
        Ok(Running { program, types: self.output_types.clone() })
    }

    /// Loads on a full device and on a minimal one, poisons all device memory, runs, and hands both results over.
    #[track_caller]
    pub fn check(&self, inputs: &[&Data], verify: impl Fn(&[Data])) {
        self.check_with(&Options::default(), inputs, verify);
    }

    /// The same with options.
    #[track_caller]
    pub fn check_with(&self, options: &Options, inputs: &[&Data], verify: impl Fn(&[Data])) {
        if self.noted() {
            return;
        }
        for profile in [Profile::Full, Profile::Minimal] {
            let mut running = self.load_with(options.clone(), profile).unwrap();
            running.program.fill_activations(0xFF).unwrap();
            verify(&running.run(inputs).unwrap());
        }
    }
}

thread_local! {
    static NOTED: RefCell<Option<Vec<Model>>> = const { RefCell::new(None) };
}

/// The models that tests would check; none is loaded.
pub fn models_of(tests: &[fn()]) -> Vec<Model> {
    NOTED.set(Some(Vec::new()));
    tests.iter().for_each(|test| test());
    NOTED.take().unwrap()
}

impl Model {
    /// True when this thread asks for the models of tests instead of running them: this is one of them.
    pub fn noted(&self) -> bool {
        NOTED.with_borrow_mut(|noted| noted.as_mut().map(|models| models.push(self.clone()))).is_some()
    }
}

impl DataSource for Model {
    fn number(&self) -> Option<u64> {
        Some(self.source).filter(|&source| source != 0)
    }

    fn with(&self, key: &str, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        read(self.named.get(key).ok_or_else(|| Error::Data(format!("{key} is not there")))?)
    }
}

/// A loaded model.
pub struct Running {
    pub program: Program,
    types: Vec<DType>,
}

impl Running {
    pub fn run(&mut self, inputs: &[&Data]) -> Result<Vec<Data>> {
        with_tensors(inputs, |values| self.run_values(values))
    }

    pub fn run_values(&mut self, inputs: &[HostValue<'_>]) -> Result<Vec<Data>> {
        let outputs = self.collect(inputs, Timed::Nothing)?;
        Ok(outputs.results.iter().map(|(dtype, dims, bytes)| Data::from_bytes(*dtype, dims, bytes)).collect())
    }

    /// Runs once with timestamps; one entry per dispatch, or one for the call.
    pub fn profile(&mut self, inputs: &[&Data], timed: Timed) -> Result<Vec<Span>> {
        with_tensors(inputs, |values| self.profile_values(values, timed))
    }

    pub fn profile_values(&mut self, inputs: &[HostValue<'_>], timed: Timed) -> Result<Vec<Span>> {
        Ok(self.collect(inputs, timed)?.steps)
    }

    fn collect(&mut self, inputs: &[HostValue<'_>], timed: Timed) -> Result<Collected> {
        let results = self.types.iter().map(|&dtype| (dtype, Vec::new(), Vec::new())).collect();
        let mut outputs = Collected { results, timed, steps: Vec::new() };
        self.program.execute(inputs, &mut outputs)?;
        Ok(outputs)
    }
}

fn with_tensors<T>(inputs: &[&Data], run: impl FnOnce(&[HostValue<'_>]) -> T) -> T {
    let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.bytes()).collect();
    let mut values = Vec::new();
    for (x, bytes) in inputs.iter().zip(&bytes) {
        values.push(HostValue::Tensor(HostTensor { dtype: x.dtype, dims: x.shape(), bytes }));
    }
    run(&values)
}

/// One profiled dispatch or call: device time in nanoseconds.
pub struct Span {
    pub name: String,
    pub start: u64,
    pub end: u64,
}

impl Span {
    pub fn time(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

struct Collected {
    results: Vec<(DType, Vec<u32>, Vec<u8>)>,
    timed: Timed,
    steps: Vec<Span>,
}

impl Outputs for Collected {
    fn dtype(&self, index: usize) -> Option<DType> {
        self.results.get(index).map(|r| r.0)
    }

    fn tensor(&mut self, index: usize, dims: &Dims) -> Result<&mut [u8]> {
        let (dtype, shape, bytes) = &mut self.results[index];
        *shape = dims.to_vec();
        *bytes = vec![0xFF; dims.numel() as usize * dtype.size()];
        Ok(bytes)
    }

    fn scalar(&mut self, index: usize, value: i64) -> Result<()> {
        self.results[index] = (DType::I64, vec![], value.to_le_bytes().to_vec());
        Ok(())
    }

    fn timed(&self) -> Timed {
        self.timed
    }

    fn step(&mut self, name: &str, start: u64, end: u64) {
        self.steps.push(Span { name: name.into(), start, end });
    }
}
