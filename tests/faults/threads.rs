use std::sync::Barrier;
use std::thread;

use crate::common::Data;
use crate::common::model::Running;
use crate::seeds;

/// A prompt and some steps after it.
fn decode(running: &mut Running) -> Vec<Data> {
    let mut all = Vec::new();
    for (seq, pos) in [(4, 0), (1, 4), (1, 5), (2, 6), (1, 8)] {
        let inputs = seeds::decoder_inputs(seq, pos);
        all.extend(running.run(&inputs.iter().collect::<Vec<_>>()).unwrap());
    }
    all
}

#[test]
fn load_call_and_drop_on_three_threads() {
    let expected = decode(&mut seeds::decoder().load().unwrap());
    let running = thread::spawn(|| seeds::decoder().load().unwrap()).join().unwrap();
    let (found, running) = thread::spawn(|| {
        let mut running = running;
        (decode(&mut running), running)
    })
    .join()
    .unwrap();
    assert_eq!(found, expected);
    thread::spawn(move || drop(running)).join().unwrap();
    assert_eq!(decode(&mut seeds::decoder().load().unwrap()), expected);
}

#[test]
fn two_programs_run_at_once() {
    let expected = decode(&mut seeds::decoder().load().unwrap());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut running = seeds::decoder().load().unwrap();
                start.wait();
                for _ in 0..20 {
                    assert_eq!(decode(&mut running), expected);
                }
            });
        }
    });
}

#[test]
fn programs_load_and_drop_while_another_runs() {
    let expected = decode(&mut seeds::decoder().load().unwrap());
    let mut running = seeds::decoder().load().unwrap();
    thread::scope(|scope| {
        let loader = scope.spawn(|| (0..6).for_each(|_| drop(seeds::decoder().load().unwrap())));
        while !loader.is_finished() {
            assert_eq!(decode(&mut running), expected);
        }
    });
}

#[test]
fn models_of_different_shapes_keep_their_solo_results() {
    let shapes = [(2, 8, 12), (3, 16, 8), (1, 4, 20)];
    let inputs = |heads, d| Data::random(seeds::F32, &[1, 4, heads, d], (-1.0, 1.0), 9);
    let run = |running: &mut Running, (heads, d, _)| running.run(&[&inputs(heads, d), &Data::i64(&[1], &[0])]).unwrap();
    let load = |(heads, d, n)| seeds::decoder_of(heads, d, 16, n).load().unwrap();
    let solo: Vec<Vec<Data>> = shapes.iter().map(|&shape| run(&mut load(shape), shape)).collect();
    let mut together: Vec<Running> = shapes.iter().map(|&shape| load(shape)).collect();
    for _ in 0..2 {
        for ((running, &shape), solo) in together.iter_mut().zip(&shapes).zip(&solo) {
            assert_eq!(&run(running, shape), solo);
        }
    }
}
