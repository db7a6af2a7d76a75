//! Applications that answer as they like: whatever they say of their elements, a reading comes to an end within its bounds.
#![no_main]

use std::time::{Duration, Instant};

use elements::wire::{length, parse, said};
use elements::{Area, Collector, Cover, Seen, Window};
use libfuzzer_sys::fuzz_target;

const SIGNATURES: [&str; 12] = [
    "a(so)",
    "au",
    "u",
    "as",
    "v",
    "(iiii)",
    "s",
    "a(sss)",
    "a((so)(so)(so)iiassusau)",
    "a((so)(so)(so)a(so)assusau)",
    "siiva{sv}",
    "",
];
const EVENTS: [&str; 6] =
    ["StateChanged", "ChildrenChanged", "PropertyChange", "TextChanged", "BoundsChanged", "VisibleDataChanged"];
const MOST_MESSAGES: usize = 400;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut take = |most: usize| {
        let (part, after) = rest.split_at(most.min(rest.len()));
        rest = after;
        part
    };
    let mut collector = Collector::new();
    let mut now = Instant::now();
    let mut messages = 0;
    let area = Area { x: 0, y: 0, width: 100, height: 100 };
    for (deep, target) in [(false, None), (true, None), (true, Some(2))] {
        if let Some(reference) = target {
            collector.scroll_to(reference);
        }
        let covers = take(1).iter().map(|age| Cover { area, age: Duration::from_millis(u64::from(*age)) }).collect();
        let windows = vec![Window { pid: 1, area }];
        let seen = Seen { changed: vec![area], age: Duration::ZERO, windows, covers, deep, target, scrolling: deep };
        collector.begin(seen, now);
        while messages < MOST_MESSAGES {
            let output = collector.take_output();
            let mut asked = &output[..];
            let before = messages;
            while let Ok(Some(end)) = length(asked) {
                let (one, after) = asked.split_at(end);
                asked = after;
                let call = parse(one).expect("what is asked is a message");
                let [kind, size] = take(2) else { return };
                let mut out = Vec::new();
                let signature = SIGNATURES[usize::from(*kind) % SIGNATURES.len()];
                let sender = if call.destination.is_empty() { ":1.1" } else { call.destination };
                said(&mut out, call.serial, (sender, ""), ("", ""), (signature, take(usize::from(*size))));
                if let Ok(answer) = parse(&out) {
                    collector.take(&answer, now);
                }
                if kind & 0x80 != 0 {
                    let [which, size] = take(2) else { return };
                    let mut out = Vec::new();
                    let event = ("org.a11y.atspi.Event.Object", EVENTS[usize::from(*which) % EVENTS.len()]);
                    said(&mut out, 0, (sender, call.path), event, ("siiva{sv}", take(usize::from(*size))));
                    if let Ok(event) = parse(&out) {
                        collector.take(&event, now);
                    }
                }
                messages += 1;
            }
            now += Duration::from_millis(50);
            collector.tick(now);
            if messages == before {
                break;
            }
        }
        collector.end();
        let _ = collector.snapshot();
    }
});
