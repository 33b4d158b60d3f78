//! The cxx bridge: plain structs and status numbers, made safe and typed by the rest of the crate.

#[cxx::bridge(namespace = "etwgpu::host")]
pub(crate) mod ffi {
    /// A runtime option; `kind` says which of the values counts.
    struct RawOption {
        key: String,
        kind: OptionKind,
        number: i32,
        text: String,
    }

    enum OptionKind {
        Bool,
        Int,
        Text,
    }

    /// An EValue; `tag` says which of the fields count.
    struct RawValue {
        tag: ValueTag,
        integer: i64,
        real: f64,
        scalar_type: i32,
        sizes: Vec<i32>,
        bytes: Vec<u8>,
    }

    /// What a method says about an input or output; sizes are upper bounds.
    struct RawInfo {
        tag: ValueTag,
        scalar_type: i32,
        sizes: Vec<i32>,
    }

    /// A step that a delegate recorded; times are nanoseconds on one clock.
    struct RawStep {
        name: String,
        start: u64,
        end: u64,
    }

    enum ValueTag {
        None,
        Tensor,
        Int,
        Double,
        Bool,
        Other,
    }

    extern "Rust" {
        fn append(out: &mut Vec<u8>, bytes: &[u8]);
    }

    unsafe extern "C++" {
        include!("etwgpu-host/src/bridge.h");

        type Host;

        fn open(program: &str, data_files: &[String], traced: bool) -> Result<UniquePtr<Host>>;
        fn load(self: Pin<&mut Host>, options: &[RawOption]) -> Result<u32>;
        fn load_method(self: Pin<&mut Host>, method: &str) -> Result<u32>;
        fn method_names(self: Pin<&mut Host>, out: &mut Vec<String>) -> Result<u32>;
        fn inputs(self: Pin<&mut Host>, method: &str, out: &mut Vec<RawInfo>) -> Result<u32>;
        fn outputs(self: Pin<&mut Host>, method: &str, out: &mut Vec<RawInfo>) -> Result<u32>;
        fn execute(
            self: Pin<&mut Host>,
            method: &str,
            inputs: &[RawValue],
            out: &mut Vec<RawValue>,
            nanoseconds: &mut u64,
        ) -> Result<u32>;
        fn take_steps(self: Pin<&mut Host>, out: &mut Vec<RawStep>) -> Result<()>;
        fn take_trace(self: Pin<&mut Host>) -> Result<Vec<u8>>;
        fn error_name(code: u32) -> String;
    }
}

fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}
