//! The C ABI called as C calls it: null pointers everywhere, truncated texts, options, callbacks, a whole program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../faults/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
#[path = "../payload/seeds.rs"]
mod seeds;

mod host;

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use common::{Data, Model};
use executorch_webgpu::ffi::*;
use host::{Host, assert_refused, execute, last_error, load, request, scalar, tensor};

#[test]
fn null_pointers_are_refused_by_name() {
    let mut host = Host::new(seeds::smallest(), &[]);
    let payload = host.model.payload.write();
    let whole = request(host.table(), &payload);
    let untouched = 16usize as *mut EtwgpuProgram;
    let mut program = untouched;
    // SAFETY: null is allowed everywhere, and what is not null is valid.
    unsafe {
        assert_refused(etwgpu_init(null(), &mut program), ETWGPU_SHAPE, "init");
        assert_refused(etwgpu_init(&whole, null_mut()), ETWGPU_SHAPE, "out");
        assert_refused(
            etwgpu_init(&EtwgpuInit { payload: null(), ..request(host.table(), &payload) }, &mut program),
            ETWGPU_SHAPE,
            "payload",
        );
        assert_refused(
            etwgpu_init(&EtwgpuInit { specs_len: 1, ..request(host.table(), &payload) }, &mut program),
            ETWGPU_SHAPE,
            "specs",
        );
        assert_refused(
            etwgpu_init(&EtwgpuInit { options_len: 1, ..request(host.table(), &payload) }, &mut program),
            ETWGPU_SHAPE,
            "options",
        );
        assert_refused(
            etwgpu_init(&EtwgpuInit { payload_len: 0, ..request(host.table(), &payload) }, &mut program),
            ETWGPU_PAYLOAD,
            "0 bytes",
        );
        assert_refused(etwgpu_set_option(null()), ETWGPU_SHAPE, "option");
        assert_refused(etwgpu_get_option(null(), null_mut(), null_mut(), 0), ETWGPU_SHAPE, "key");
        assert_refused(etwgpu_get_option(c"adapter".as_ptr(), null_mut(), null_mut(), 0), ETWGPU_SHAPE, "out");
        assert_refused(etwgpu_execute(null_mut(), null(), null(), 0), ETWGPU_SHAPE, "program");
        assert_refused(etwgpu_memory(null_mut()), ETWGPU_SHAPE, "out");
        assert_refused(etwgpu_program_memory(null(), null_mut()), ETWGPU_SHAPE, "program");
        assert_eq!(etwgpu_program_plan(null(), null_mut(), 0), 0);
        etwgpu_destroy(null_mut());
        assert_eq!(program, untouched);
        assert_eq!(etwgpu_init(&whole, &mut program), ETWGPU_OK);
        assert_refused(etwgpu_execute(program, null(), null(), 0), ETWGPU_SHAPE, "host");
        assert_refused(etwgpu_execute(program, &host.table(), null(), 2), ETWGPU_SHAPE, "args");
        assert_refused(etwgpu_program_memory(program, null_mut()), ETWGPU_SHAPE, "out");
        etwgpu_destroy(program);
    }
}

#[test]
fn specs_and_options_may_hold_null() {
    let mut host = Host::new(seeds::smallest(), &[]);
    let payload = host.model.payload.write();
    let key = CString::new("webgpu_record_q4gsw_decode_route").unwrap();
    let mut program = null_mut();
    for (key, data, len, status, word) in [
        (key.as_ptr(), null(), 0, ETWGPU_PAYLOAD, "0 bytes"),
        (key.as_ptr(), null(), 1, ETWGPU_SHAPE, "webgpu_record_q4gsw_decode_route"),
        (key.as_ptr(), b"\x01\x01".as_ptr(), 2, ETWGPU_PAYLOAD, "2 bytes"),
        (null(), b"\x01".as_ptr(), 1, ETWGPU_SHAPE, "compile spec key"),
    ] {
        let spec = EtwgpuSpec { key, data, len };
        let init = EtwgpuInit { specs: &spec, specs_len: 1, ..request(host.table(), &payload) };
        // SAFETY: all pointers are null or valid for the call.
        assert_refused(unsafe { etwgpu_init(&init, &mut program) }, status, word);
    }
    for (key, kind, status, word) in [
        (null(), ETWGPU_OPTION_INT, ETWGPU_SHAPE, "option key"),
        (c"adapter".as_ptr(), ETWGPU_OPTION_STRING, ETWGPU_SHAPE, "adapter"),
        (c"adapter".as_ptr(), ETWGPU_OPTION_BOOL, ETWGPU_OPTION, "adapter"),
        (c"sdpa_query_tile".as_ptr(), 77, ETWGPU_OPTION, "kind 77"),
        (c"enable_f16_kv_cache".as_ptr(), ETWGPU_OPTION_INT, ETWGPU_OPTION, "enable_f16_kv_cache"),
    ] {
        let option = EtwgpuOption { key, kind, int_value: 1, string_value: null() };
        let init = EtwgpuInit { options: &option, options_len: 1, ..request(host.table(), &payload) };
        // SAFETY: all pointers are null or valid for the call.
        assert_refused(unsafe { etwgpu_init(&init, &mut program) }, status, word);
        // SAFETY: as above.
        assert_refused(unsafe { etwgpu_set_option(&option) }, status, word);
    }
    assert!(program.is_null());
}

#[test]
fn the_last_error_is_cut_at_a_character() {
    let wanted = CString::new("gerät ✗").unwrap();
    let option = EtwgpuOption { key: wanted.as_ptr(), kind: 9, int_value: 0, string_value: null() };
    // SAFETY: the option is valid.
    assert_refused(unsafe { etwgpu_set_option(&option) }, ETWGPU_OPTION, "gerät ✗");
    let whole = last_error();
    for capacity in 0..=whole.len() + 2 {
        let mut bytes = vec![0xEEu8; capacity + 1];
        // SAFETY: the buffer holds `capacity` bytes and one more.
        assert_eq!(unsafe { etwgpu_last_error(bytes.as_mut_ptr().cast(), capacity) }, whole.len());
        assert_eq!(bytes[capacity], 0xEE);
        if capacity > 0 {
            let text = CStr::from_bytes_until_nul(&bytes).unwrap().to_str().unwrap();
            assert!(whole.starts_with(text) && text.len() < capacity && text.len() + 4 > capacity.min(whole.len()));
        }
    }
    // SAFETY: null with any capacity is allowed.
    assert_eq!(unsafe { etwgpu_last_error(null_mut(), 100) }, whole.len());
    let elsewhere = std::thread::spawn(last_error).join().unwrap();
    assert_eq!(elsewhere, "");
}

#[test]
fn options_are_set_and_read_back() {
    let mut buffer = [0 as c_char; 16];
    let mut found = EtwgpuOption { key: null(), kind: 99, int_value: 5, string_value: null() };
    let set = |kind, number, text: *const c_char, key: &CStr| {
        let option = EtwgpuOption { key: key.as_ptr(), kind, int_value: number, string_value: text };
        // SAFETY: the option is valid.
        unsafe { etwgpu_set_option(&option) }
    };
    let mut get = |key: &CStr, capacity| {
        // SAFETY: the buffer holds 16 bytes.
        unsafe { etwgpu_get_option(key.as_ptr(), &mut found, buffer.as_mut_ptr(), capacity) }
    };
    assert_eq!(set(ETWGPU_OPTION_STRING, 0, c"0".as_ptr(), c"adapter"), ETWGPU_OK);
    assert_eq!(get(c"adapter", 16), ETWGPU_OK);
    assert_refused(get(c"adapter", 1), ETWGPU_OPTION, "2 bytes");
    assert_refused(get(c"nothing", 16), ETWGPU_OPTION, "nothing");
    assert_eq!(set(ETWGPU_OPTION_STRING, 0, c"".as_ptr(), c"adapter"), ETWGPU_OK);
    assert_eq!(set(ETWGPU_OPTION_INT, 16, null(), c"sdpa_query_tile"), ETWGPU_OK);
    assert_eq!(get(c"sdpa_query_tile", 0), ETWGPU_OK);
    assert_eq!((found.kind, found.int_value), (ETWGPU_OPTION_INT, 16));
    assert_refused(set(ETWGPU_OPTION_INT, -1, null(), c"sdpa_query_tile"), ETWGPU_OPTION, "-1");
    assert_eq!(set(ETWGPU_OPTION_INT, 0, null(), c"sdpa_query_tile"), ETWGPU_OK);
    assert_eq!(set(ETWGPU_OPTION_BOOL, 1, null(), c"an option of another delegate"), ETWGPU_OK);
}

#[test]
fn a_program_runs_and_its_memory_and_plan_are_told() {
    let mut host = Host::new(seeds::decoder(), &[0, 0, 4 * 2 * 12 * 4, 0]);
    let program = load(&mut host);
    assert!(host.lent > 0);
    let inputs = seeds::decoder_inputs(3, 2);
    let (x, pos) = (inputs[0].bytes(), inputs[1].bytes());
    let args = [
        tensor(6, &x, &[1, 3, 2, 8]),
        tensor(4, &pos, &[1]),
        tensor(6, &[], &[1, 4, 2, 12]),
        scalar(ETWGPU_ARG_INT, 0),
    ];
    assert_eq!(execute(program, &mut host, &args), ETWGPU_OK, "{}", last_error());
    assert_eq!((&host.shapes[..], &host.scalars[..]), (&[vec![1, 3, 2, 12]][..], &[(3, 5)][..]));
    let expected = seeds::decoder().load().unwrap().run(&inputs.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(host.outputs[2][..3 * 2 * 12 * 4], expected[0].bytes());
    assert_eq!(host.outputs[2][3 * 2 * 12 * 4..], [0xAA; 2 * 12 * 4]);
    let mut memory = EtwgpuMemory::default();
    let mut text = vec![0u8; 64];
    // SAFETY: the program lives and all pointers are valid.
    unsafe {
        assert_eq!(etwgpu_program_memory(program, &mut memory), ETWGPU_OK);
        let len = etwgpu_program_plan(program, text.as_mut_ptr().cast(), text.len());
        assert!(len > 64 && CStr::from_bytes_until_nul(&text).unwrap().to_bytes().len() == 63);
        etwgpu_destroy(program);
    }
    assert!(memory.weights > 0 && memory.caches > 0 && memory.peak >= memory.weights + memory.caches);
}

#[test]
fn arguments_that_make_no_sense_are_refused_and_the_next_call_works() {
    let mut host = Host::new(seeds::smallest(), &[0, 24]);
    let program = load(&mut host);
    let x = Data::random(seeds::F32, &[2, 3], (-1.0, 1.0), 3).bytes();
    let good = || [tensor(6, &x, &[2, 3]), tensor(6, &[], &[2, 3])];
    let input = |arg: EtwgpuArg| [arg, tensor(6, &[], &[2, 3])];
    let (rows, columns) = ([0u8, 1], [1u8, 0]);
    let bad: Vec<(Vec<EtwgpuArg>, &str)> = vec![
        (Vec::new(), "0 arguments"),
        (vec![tensor(6, &x, &[2, 3])], "1 arguments"),
        (input(EtwgpuArg { kind: 55, ..tensor(6, &x, &[2, 3]) }).into(), "kind 55"),
        (input(EtwgpuArg { data: null(), ..tensor(6, &x, &[2, 3]) }).into(), "input 0"),
        (input(EtwgpuArg { dims: null(), ..tensor(6, &x, &[2, 3]) }).into(), "input 0"),
        (input(tensor(99, &x, &[2, 3])).into(), "scalar type 99"),
        (input(tensor(-1, &x, &[2, 3])).into(), "scalar type -1"),
        (input(tensor(6, &x, &[2, -3])).into(), "negative"),
        (input(tensor(6, &x, &[i32::MAX, i32::MAX])).into(), "elements"),
        (input(tensor(6, &x, &[1; 9])).into(), "rank 9"),
        (input(EtwgpuArg { dim_order: columns.as_ptr(), ..tensor(6, &x, &[2, 3]) }).into(), "dim order [1, 0]"),
        (input(scalar(ETWGPU_ARG_NONE, 0)).into(), "input 0"),
        (vec![tensor(6, &x, &[2, 3]), tensor(4, &[], &[2, 3])], "output 0"),
        (vec![tensor(6, &x, &[2, 3]), tensor(77, &[], &[2, 3])], "output 0"),
        (vec![tensor(6, &x, &[2, 3]), scalar(ETWGPU_ARG_INT, 0)], "output 0"),
        (
            vec![tensor(6, &x, &[2, 3]), EtwgpuArg { dim_order: columns.as_ptr(), ..tensor(6, &[], &[2, 3]) }],
            "dim order",
        ),
    ];
    for (args, word) in &bad {
        assert_refused(execute(program, &mut host, args), ETWGPU_SHAPE, word);
        assert_eq!(execute(program, &mut host, &good()), ETWGPU_OK, "{}", last_error());
    }
    let ordered = input(EtwgpuArg { dim_order: rows.as_ptr(), ..tensor(6, &x, &[2, 3]) });
    assert_eq!(execute(program, &mut host, &ordered), ETWGPU_OK, "{}", last_error());
    host.outputs[1].truncate(23);
    assert_refused(execute(program, &mut host, &good()), ETWGPU_SHAPE, "23 bytes");
    let table = EtwgpuHost { resize_output: None, ..host.table() };
    let args = good();
    // SAFETY: all pointers are valid for the call.
    assert_refused(unsafe { etwgpu_execute(program, &table, args.as_ptr(), 2) }, ETWGPU_SHAPE, "output 0");
    // SAFETY: the program is not used afterwards.
    unsafe { etwgpu_destroy(program) };
}

#[test]
fn a_symint_goes_to_any_integer_that_holds_it() {
    let mut m = Model::new();
    let n = m.symint();
    m.payload.inputs.push(n);
    m.output(n);
    let mut host = Host::new(m, &[0, 8]);
    let program = load(&mut host);
    let types = [(0, 1), (1, 1), (3, 4), (4, 8), (11, 1)];
    for (value, held) in
        [(7i64, &[0, 1, 3, 4, 11][..]), (-7, &[1, 3, 4, 11]), (300, &[3, 4, 11]), (0, &[0, 1, 3, 4, 11])]
    {
        for (scalar_type, size) in types {
            let args = [scalar(ETWGPU_ARG_INT, value), tensor(scalar_type, &[], &[])];
            let status = execute(program, &mut host, &args);
            if !held.contains(&scalar_type) {
                assert_refused(status, ETWGPU_SHAPE, &value.to_string());
                continue;
            }
            assert_eq!(status, ETWGPU_OK, "{}", last_error());
            let expected = if scalar_type == 11 { i64::from(value != 0) } else { value };
            assert_eq!(host.outputs[1][..size], expected.to_le_bytes()[..size], "{value} as {scalar_type}");
        }
        let args = [scalar(ETWGPU_ARG_INT, value), tensor(6, &[], &[])];
        assert_refused(execute(program, &mut host, &args), ETWGPU_SHAPE, "output 0");
    }
    // SAFETY: the program is not used afterwards.
    unsafe { etwgpu_destroy(program) };
}

#[test]
fn data_that_the_host_does_not_give_is_named() {
    let key = seeds::decoder().named.keys().max().unwrap().clone();
    let mut short = seeds::decoder();
    short.named.get_mut(&key).unwrap().pop();
    let mut missing = seeds::decoder();
    missing.named.remove(&key);
    for model in [short, missing] {
        let mut host = Host::new(model, &[]);
        let payload = host.model.payload.write();
        let mut program = null_mut();
        // SAFETY: all pointers are valid for the call.
        assert_refused(unsafe { etwgpu_init(&request(host.table(), &payload), &mut program) }, ETWGPU_DATA, &key);
        assert!(program.is_null() && host.lent == host.returned);
    }
}

#[test]
fn a_result_may_replace_its_input() {
    let mut host = Host::new(seeds::smallest(), &[0, 24]);
    let program = load(&mut host);
    let x = Data::f32(&[2, 3], vec![-1.0, 2.0, -3.0, 4.0, -5.0, 6.0]);
    host.outputs[1] = x.bytes();
    let (data, len) = (host.outputs[1].as_ptr(), 24);
    let args = [EtwgpuArg { data, len, ..tensor(6, &[], &[2, 3]) }, tensor(6, &[], &[2, 3])];
    assert_eq!(execute(program, &mut host, &args), ETWGPU_OK, "{}", last_error());
    assert_eq!(Data::from_bytes(seeds::F32, &[2, 3], &host.outputs[1]).values, [0.0, 2.0, 0.0, 4.0, 0.0, 6.0]);
    // SAFETY: the program is not used afterwards.
    unsafe { etwgpu_destroy(program) };
}

static LOG: Mutex<String> = Mutex::new(String::new());

extern "C" fn log_line(level: u32, text: *const c_char, len: usize) {
    // SAFETY: the delegate passes `len` readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    *LOG.lock().unwrap() += &format!("{level} {}\n", std::str::from_utf8(bytes).unwrap());
}

#[test]
fn the_log_names_the_adapter_once_with_what_it_can_do() {
    child::alone("the_log_names_the_adapter_once_with_what_it_can_do", &[], || {
        let mut host = Host::new(seeds::smallest(), &[]);
        let payload = host.model.payload.write();
        let table = EtwgpuHost { log: Some(log_line), ..host.table() };
        let (key, kind) = (c"of_another_delegate".as_ptr(), ETWGPU_OPTION_INT);
        let option = EtwgpuOption { key, kind, int_value: 1, string_value: null() };
        for _ in 0..2 {
            let init = EtwgpuInit { options: &option, options_len: 1, ..request(table, &payload) };
            let mut program = null_mut();
            // SAFETY: all pointers are valid for the call, and the program is not used afterwards.
            unsafe {
                assert_eq!(etwgpu_init(&init, &mut program), ETWGPU_OK, "{}", last_error());
                etwgpu_destroy(program);
            }
        }
        let log = LOG.lock().unwrap().clone();
        let adapters: Vec<&str> = log.lines().filter(|line| line.starts_with("3 adapter ")).collect();
        let words = ["f16 ", "subgroups ", "timestamps ", "shared "];
        assert!(adapters.len() == 1 && words.iter().all(|word| adapters[0].contains(word)), "{log}");
        assert!(log.contains("2 option of_another_delegate is unknown and ignored"), "{log}");
    });
}
