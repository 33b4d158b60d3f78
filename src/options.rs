//! Runtime options: process-wide defaults, load-time runtime specs and compile specs, all parsed into [`Options`].

use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::ops::{attention, linear};

/// An option's value as ExecuTorch carries it.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `const char*`
    Str(String),
}

/// Everything a user can choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Quantised layers of many rows sum in f16: faster on some GPUs, less exact. Off by default.
    ///
    /// In tiles, 16 products at a time: the root mean square of the errors stays below 1e-3 of that of the results, for groups
    /// of every size; with activations in -1..1 and weights below 0.16, `cargo test --test ops q4_half_sums -- --nocapture`
    /// prints 2e-4 of 0.29 for K = 64, 1.1e-3 of 1.6 for K = 2048 and 2.3e-3 of 3.3 for K = 8192. Activations must stay below
    /// 65504. On cooperative matrices that sum in f16, over the whole of K: 1.7e-3 of the results was measured at K = 2048 and
    /// 3.4e-3 at K = 8192; every row is brought below 1 first, so that sums are finite while the magnitudes of a column's weights add up
    /// to less than 65504. A device without shader-f16 keeps f32 sums and says so in the log, as does one whose cooperative
    /// matrices sum in f32 only.
    pub enable_f16_accumulate_gemm: bool,
    /// Quantised layers and attention multiply in f32 even where cooperative matrices would be faster in f16. Off by default.
    pub force_f32_gemm: bool,
    /// KV caches of `sdpa_with_kv_cache` are kept in f16: half the memory. Off by default.
    pub enable_f16_kv_cache: bool,
    /// Query rows that one attention workgroup handles; 0 lets the delegate choose.
    pub sdpa_query_tile: u32,
    /// Which adapter: a part of its name (any case) or its index; the best one when absent.
    pub adapter: Option<String>,
    /// Where compiled pipelines are kept: a directory, or nowhere for "none"; the user's cache directory when absent. The first
    /// program of a device decides.
    pub pipeline_cache_dir: Option<String>,
    /// Compile spec of static programs: expect single-row calls too. Every program here handles both; the value is checked.
    pub webgpu_record_q4gsw_decode_route: bool,
    /// Computes every matrix product in this way where it is possible at all. Not a runtime option: for tests and benches.
    pub force_gemm: Option<linear::Algorithm>,
    /// Cuts every attention in this way. Not a runtime option either.
    pub force_attention: Option<attention::Cut>,
}

/// The largest `sdpa_query_tile`; far more than any kernel takes.
const MOST_ROWS: u32 = 1 << 16;

/// Name, type and meaning of each runtime option, for documentation.
pub const RUNTIME_OPTIONS: &[(&str, &str, &str)] = &[
    ("enable_f16_accumulate_gemm", "bool", "accumulate quantised GEMMs in f16: faster, less exact; default false"),
    (
        "force_f32_gemm",
        "bool",
        "multiply quantised layers and attention in f32 even where f16 is faster; default false",
    ),
    ("enable_f16_kv_cache", "bool", "keep the KV caches of sdpa_with_kv_cache in f16; default false"),
    ("sdpa_query_tile", "int", "query rows per attention workgroup; default 0, the delegate chooses"),
    (
        "pipeline_cache_dir",
        "string",
        "where compiled pipelines are kept; \"none\": nowhere; default: the user's cache directory",
    ),
    ("adapter", "string", "GPU to use: its index, or part of its name; default: the most capable one"),
];

impl Options {
    /// Sets one runtime option. Unknown names are logged and ignored, as other backends' options may be among them.
    pub fn set(&mut self, key: &str, value: &OptionValue) -> Result<()> {
        match key {
            "enable_f16_accumulate_gemm" => self.enable_f16_accumulate_gemm = boolean(key, value)?,
            "force_f32_gemm" => self.force_f32_gemm = boolean(key, value)?,
            "enable_f16_kv_cache" => self.enable_f16_kv_cache = boolean(key, value)?,
            "sdpa_query_tile" => {
                let OptionValue::Int(n) = value else { return Err(wrong(key, "an int", value)) };
                let rows = u32::try_from(*n).ok().filter(|&rows| rows <= MOST_ROWS);
                self.sdpa_query_tile =
                    rows.ok_or_else(|| Error::Option(format!("{key} is {n}, expected 0 to {MOST_ROWS} rows")))?;
            }
            "pipeline_cache_dir" => {
                let OptionValue::Str(name) = value else { return Err(wrong(key, "a string", value)) };
                self.pipeline_cache_dir = Some(name.clone()).filter(|name| !name.is_empty());
            }
            "adapter" => self.adapter = adapter(key, value)?,
            _ => log::warn!("option {key} is unknown and ignored"),
        }
        Ok(())
    }

    /// The current value of an option; `None` for unknown names.
    pub fn get(&self, key: &str) -> Option<OptionValue> {
        Some(match key {
            "enable_f16_accumulate_gemm" => OptionValue::Bool(self.enable_f16_accumulate_gemm),
            "force_f32_gemm" => OptionValue::Bool(self.force_f32_gemm),
            "enable_f16_kv_cache" => OptionValue::Bool(self.enable_f16_kv_cache),
            "sdpa_query_tile" => OptionValue::Int(i64::from(self.sdpa_query_tile)),
            "pipeline_cache_dir" => OptionValue::Str(self.pipeline_cache_dir.clone().unwrap_or_default()),
            "adapter" => OptionValue::Str(self.adapter.clone().unwrap_or_default()),
            _ => return None,
        })
    }

    /// Why a device does not follow `enable_f16_accumulate_gemm`, if it does not.
    pub fn f16_accumulate_refusal(&self, caps: &Caps) -> Option<&'static str> {
        let only_f32 = linear::only_f32_sums(caps);
        match (self.enable_f16_accumulate_gemm, caps.f16) {
            (true, false) => Some("the device has no shader-f16, sums stay f32"),
            (true, true) if only_f32 && !self.force_f32_gemm => Some("cooperative matrices are faster and sum in f32"),
            _ => None,
        }
    }

    /// Reads one compile spec. Unknown ones belong to the exporter and are ignored.
    pub fn compile_spec(&mut self, key: &str, value: &[u8]) -> Result<()> {
        if key == "webgpu_record_q4gsw_decode_route" {
            let [byte] = value else {
                return Err(Error::Payload(format!("compile spec {key} has {} bytes, expected 1", value.len())));
            };
            self.webgpu_record_q4gsw_decode_route = *byte != 0;
        }
        Ok(())
    }
}

fn boolean(key: &str, value: &OptionValue) -> Result<bool> {
    match value {
        OptionValue::Bool(b) => Ok(*b),
        other => Err(wrong(key, "a bool", other)),
    }
}

fn adapter(key: &str, value: &OptionValue) -> Result<Option<String>> {
    match value {
        OptionValue::Str(name) => Ok((!name.is_empty()).then(|| name.clone())),
        OptionValue::Int(index) if *index >= 0 => Ok(Some(index.to_string())),
        other => Err(wrong(key, "a string, part of a name, or an index", other)),
    }
}

fn wrong(key: &str, expected: &str, found: &OptionValue) -> Error {
    let found = match found {
        OptionValue::Bool(value) => format!("the bool {value}"),
        OptionValue::Int(value) => format!("the int {value}"),
        OptionValue::Str(value) => format!("the string {value:?}"),
    };
    Error::Option(format!("{key} is {found}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_option_round_trips_and_checks_its_type() {
        for (key, kind, _) in RUNTIME_OPTIONS {
            let (good, bad) = match *kind {
                "bool" => (OptionValue::Bool(true), OptionValue::Int(1)),
                "int" => (OptionValue::Int(32), OptionValue::Bool(true)),
                _ => (OptionValue::Str("llvm".into()), OptionValue::Int(-1)),
            };
            let mut options = Options::default();
            options.set(key, &good).unwrap();
            assert_eq!(options.get(key), Some(good));
            let text = options.set(key, &bad).unwrap_err().to_string();
            assert!(text.contains(key) && text.contains(kind), "{text}");
        }
    }

    #[test]
    fn an_adapter_may_be_given_by_its_index() {
        let mut options = Options::default();
        options.set("adapter", &OptionValue::Int(2)).unwrap();
        assert_eq!(options.adapter.as_deref(), Some("2"));
    }

    #[test]
    fn the_decode_route_spec_is_one_byte() {
        let mut options = Options::default();
        options.compile_spec("webgpu_record_q4gsw_decode_route", &[1]).unwrap();
        assert!(options.webgpu_record_q4gsw_decode_route);
        assert!(options.compile_spec("webgpu_record_q4gsw_decode_route", &[]).is_err());
        assert!(options.compile_spec("webgpu_record_q4gsw_decode_route", &[0, 1]).is_err());
        options.compile_spec("require_dynamic_shapes", &[]).unwrap();
    }

    #[test]
    fn a_tile_that_is_no_number_of_rows_is_refused() {
        for rows in [-1, i64::MIN, i64::MAX, 1 << 32] {
            let text = Options::default().set("sdpa_query_tile", &OptionValue::Int(rows)).unwrap_err().to_string();
            assert!(text.contains("sdpa_query_tile") && text.contains(&rows.to_string()), "{text}");
        }
    }

    #[test]
    fn an_ignored_f16_accumulation_says_why() {
        let asked = Options { enable_f16_accumulate_gemm: true, ..Options::default() };
        let half = Caps { f16: true, ..Caps::minimal() };
        assert!(Options::default().f16_accumulate_refusal(&Caps::minimal()).is_none());
        assert!(asked.f16_accumulate_refusal(&half).is_none());
        assert!(asked.f16_accumulate_refusal(&Caps::minimal()).unwrap().contains("shader-f16"));
    }
}
