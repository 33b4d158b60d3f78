use std::sync::Barrier;
use std::thread;

use crate::common::model::Running;
use crate::common::{Data, Model, assert_close, q4, tolerance_of_halves};
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

#[test]
fn layers_of_different_groups_in_one_process_keep_their_own() {
    let (m, k, n) = (3, 64, 48);
    let x = Data::random(seeds::F32, &[m, k], (-1.0, 1.0), 9);
    let load = |group| {
        let (w, mut model) = (q4::random(n, k, group, u64::from(group)), Model::new());
        let (input, packed, scales) =
            (model.input(seeds::F32, &x.dims), model.constant(&w.packed), model.constant(&w.scales));
        let (group, none, y) = (model.int(i64::from(group)), model.null(), model.tensor(seeds::F32, &[m, n]));
        model.op("et_vk.linear_q4gsw.default", &[input, packed, scales, group, none, y]);
        model.output(y);
        (w.dense, model.load().unwrap())
    };
    let mut layers = [8, 16, 32, 64].map(load);
    for (dense, running) in layers.iter_mut().chain([&mut load(8), &mut load(64)]) {
        let (rows, columns) = (x.values.chunks(k as usize), dense.chunks(k as usize));
        let dot = |(x, w): (&[f64], &[f64])| x.iter().zip(w).map(|(x, w)| x * w).sum();
        let want: Vec<f64> = rows.flat_map(|x| columns.clone().map(move |w| (x, w))).map(dot).collect();
        assert_close(&running.run(&[&x]).unwrap()[0], &[m, n], &want, tolerance_of_halves(k as usize, 1.0));
    }
}
