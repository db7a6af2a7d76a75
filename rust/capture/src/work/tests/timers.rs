//! Which timers of a program are told.

use super::*;

#[test]
fn the_timer_of_a_pressed_button_is_told_from_others() {
    let ms = Duration::from_millis;
    let cases = [
        (Waiting::EventOrTimer(ms(165)), ms(85), false, true),
        // An editor's, after a line end.
        (Waiting::EventOrTimer(ms(10)), ms(85), false, false),
        (Waiting::EventOrTimer(ms(10)), ms(85), true, true),
        // A caret's.
        (Waiting::EventOrTimer(ms(600)), ms(85), true, false),
        (Waiting::Nothing, ms(198), false, true),
        (Waiting::Event, ms(85), true, false),
        (Waiting::Unknown, ms(85), true, false),
    ];
    for (waiting, since, hides, pressed) in cases {
        assert_eq!(may_press(waiting, since, hides), pressed, "{waiting:?} after {since:?}");
    }
}

/// What a program shows of its timers to the kernel, on the only architecture where the kernel tells.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod told {
    use super::*;

    /// On a busy machine a timer may have ended before it was looked for, later than this after the action.
    const PROMPT: Duration = Duration::from_millis(50);

    fn has_set_timer(work: &mut Work) -> bool {
        let now = work.take();
        work.has_set_timer(&now)
    }

    fn waits(process: u32, is_so: impl Fn(Waiting) -> bool) -> bool {
        (0..2000).any(|_| {
            sleep(Duration::from_millis(1));
            is_so(Waiting::of(process))
        })
    }

    #[test]
    fn a_timer_that_was_set_since_is_told() {
        // It waits for a line, and then for a time beside.
        let script = "import select, sys
lines = select.poll()
lines.register(0)
for limit in (500, 5000):
    lines.poll()
    sys.stdin.buffer.raw.read(1)
    lines.poll(limit)";
        let mut program = Program::run(&format!("exec python3 -c '{script}'"));
        let process = program.0.id();
        let waits = |is_so: fn(Waiting) -> bool| waits(process, is_so);
        assert!(waits(|waiting| waiting == Waiting::Event));
        let mut work = program.work();
        let acted = Instant::now();
        work.take_stock();
        assert!(!has_set_timer(&mut work));
        program.go_on();
        assert!(waits(|waiting| matches!(waiting, Waiting::EventOrTimer(_))));
        // On a busy machine the timer may have ended.
        let told = has_set_timer(&mut work);
        assert!(told || acted.elapsed() > PROMPT);
        assert!(waits(|waiting| waiting == Waiting::Event));
        assert!(!has_set_timer(&mut work));
        work.take_stock();
        program.go_on();
        assert!(waits(|waiting| matches!(waiting, Waiting::EventOrTimer(_))));
        assert!(!has_set_timer(&mut work), "a rare one");
        work.take_stock();
        assert!(work.foreseen.is_some());
    }

    #[test]
    fn a_timer_that_ends_before_the_standing_one_is_told() {
        let script = "import select, sys, time
lines = select.poll()
lines.register(0)
lines.poll()
sys.stdin.buffer.raw.read(1)
end = time.monotonic() + 1.5
left = lambda: max(0, end - time.monotonic()) * 1000
for limit in (200, 5000):
    lines.poll(left())
    sys.stdin.buffer.raw.read(1)
    lines.poll(min(limit, left()))";
        let mut program = Program::run(&format!("exec python3 -c '{script}'"));
        let process = program.0.id();
        let sets = |from: u64, to: u64| {
            let limits = Duration::from_millis(from)..=Duration::from_millis(to);
            waits(process, |waiting| matches!(waiting, Waiting::EventOrTimer(limit) if limits.contains(&limit)))
        };
        assert!(waits(process, |waiting| waiting == Waiting::Event));
        let mut work = program.work();
        work.sample();
        let begun = Instant::now();
        program.go_on();
        assert!(sets(0, 1500));
        sleep(SHORTEST_REST);
        let acted = Instant::now();
        work.take_stock();
        program.go_on();
        let told = sets(0, 200) && has_set_timer(&mut work);
        assert!(told || acted.elapsed() > PROMPT);
        // The standing timer goes on, and what is left of it is no new one.
        sleep(Duration::from_millis(1100).saturating_sub(begun.elapsed()));
        work.take_stock();
        program.go_on();
        sleep(Duration::from_millis(20));
        assert!(!has_set_timer(&mut work));
    }
}
