//! What writing and reading a packet of 1200 bytes of payload costs, headers of a path of three segments.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hawser_scion::packet::{FlowId, Template, Upper, parse};
use hawser_scion::{Dataplane, EndpointAddr};

/// Bytes of payload.
const PAYLOAD: usize = 1200;
/// Packets that are handed to the kernel at once.
const RUN: usize = 40;
/// A meta header: three segments of two hops, at the first.
const META: [u8; 4] = [0, 0, 0x20, 0x82];
/// Bytes of three info fields and six hop fields.
const FIELDS: usize = 3 * 8 + 6 * 12;

fn template() -> Template {
    let source: EndpointAddr = "1-ff00:0:110,10.0.0.1:31000".parse().expect("an endpoint");
    let destination: EndpointAddr = "1-ff00:0:120,10.0.0.2:31001".parse().expect("an endpoint");
    let path = Dataplane::Scion(Arc::from([&META[..], &[7; FIELDS]].concat()));
    Template::new(source, destination, &path, FlowId::default()).expect("a template")
}

fn bench(criterion: &mut Criterion) {
    let template = template();
    let stride = template.headroom() + PAYLOAD;
    let mut packet = vec![7; stride];
    template.finish(&mut packet);
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    group.bench_function("finish", |bencher| bencher.iter(|| template.finish(black_box(&mut packet))));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| match parse(black_box(&packet)).expect("a packet").upper() {
            Upper::Udp(udp) => (udp.source_port(), udp.payload().len()),
            other => panic!("{other:?}"),
        });
    });
    group.bench_function("parse and verify", |bencher| {
        bencher.iter(|| assert!(parse(black_box(&packet)).expect("a packet").verify_checksum()));
    });
    let mut run = vec![7; RUN * stride];
    group.throughput(Throughput::Bytes((RUN * PAYLOAD) as u64));
    group.bench_function("finish a run of 40", |bencher| {
        bencher.iter(|| template.finish_run(black_box(&mut run), stride));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
