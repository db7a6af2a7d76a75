use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

use super::activity::{AFTERMATH, ASLEEP, HANDED_ON, IN_TURN, LOOKBACK};
use super::*;
use crate::family::LISTED_AFTER;
use crate::sample::{Done, Rate};
use crate::stat::{Kept, MAX_OPEN, Sleep};

/// A program of the shell, ended with the test.
struct Program(Child);

impl Program {
    fn run(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell"))
    }

    /// Lets a `read` in the script return.
    fn go_on(&mut self) {
        self.0.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("a reader");
    }

    fn work(&self) -> Work {
        let mut work = Work::default();
        work.follow(Some(self.0.id()));
        work
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn activity_of_the_next(span: Duration, work: &mut Work) -> Activity {
    work.sample();
    sleep(span);
    work.activity()
}

/// Until it is, or long after it should have been.
fn becomes(work: &mut Work, activity: Activity) -> bool {
    (0..200).any(|_| activity_of_the_next(LOOKBACK, work) == activity)
}

#[test]
fn a_program_that_sleeps_is_not_busy() {
    let program = Program::run("exec sleep 60");
    assert!(becomes(&mut program.work(), Activity::Resting));
}

#[test]
fn a_program_that_is_stopped_is_at_work() {
    let program = Program::run("exec sleep 60");
    let mut work = program.work();
    for (signal, activity) in [("STOP", Activity::Computing), ("CONT", Activity::Resting)] {
        let told = Command::new("kill").args(["-s", signal, &program.0.id().to_string()]).status();
        assert!(told.expect("kill").success());
        assert!(becomes(&mut work, activity));
    }
}

#[test]
fn what_was_stopped_just_now_is_at_work() {
    let program = Program::run("exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Resting));
    assert!(work.stopped.is_none());
    let told = Command::new("kill").args(["-s", "STOP", &program.0.id().to_string()]).status();
    assert!(told.expect("kill").success());
    // It stops when it gets the processor.
    assert!((0..2000).any(|_| {
        sleep(SHORTEST_SPAN);
        work.sample();
        work.stopped.is_some()
    }));
    let told = Command::new("kill").args(["-s", "CONT", &program.0.id().to_string()]).status();
    assert!(told.expect("kill").success());
    // On a busy machine this test may be late itself.
    assert!((0..200).any(|_| {
        work.stopped = Some(Instant::now());
        work.activity() == Activity::Computing
    }));
    assert!(becomes(&mut work, Activity::Resting));
}

#[test]
fn of_what_does_not_run_here_nothing_is_known() {
    let mut work = Work::default();
    work.follow(None);
    assert_eq!(activity_of_the_next(LOOKBACK, &mut work), Activity::Unknown);
}

#[test]
fn a_sample_of_just_now_hides_no_work() {
    let program = Program::run("while :; do :; done");
    let mut work = program.work();
    for _ in 0..10 {
        let long_ago = work.take();
        work.samples = VecDeque::from([long_ago]);
        sleep(2 * LOOKBACK);
        let just_now = work.take();
        work.push(just_now);
        assert_eq!(work.activity(), Activity::Computing);
    }
}

#[test]
fn what_a_program_started_counts_until_it_is_over() {
    let mut program =
        Program::run("sh -c 'while :; do :; done' & child=$!; read -r _; kill $child; wait; exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Computing));
    program.go_on();
    assert!(becomes(&mut work, Activity::Resting));
}

#[test]
fn what_is_started_after_the_family_was_listed_is_found() {
    let mut program =
        Program::run("read -r _; sh -c 'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done'; exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Resting));
    // Listed once more, for what has a number and is not listed yet; from here on nothing is until something starts.
    sleep(LISTED_AFTER);
    work.take();
    program.go_on();
    assert!(becomes(&mut work, Activity::Computing));
}

#[test]
fn processes_that_begin_and_end_are_work_however_short_they_live() {
    let mut program = Program::run("read -r _; for i in 1 2 3; do /bin/true; done; read -r _; exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Resting));
    program.go_on();
    // The first listing after the last of them sees none of them, and that their parent has waited for them.
    let children = || Stat::of(&format!("/proc/{}/stat", program.0.id())).map(|stat| stat.reaped);
    let before = work.reaped.get(&program.0.id()).copied();
    assert!((0..2000).any(|_| {
        sleep(SHORTEST_SPAN);
        children() > before && numbers("/proc").all(|pid| work.ancestry.parent(pid) != Some(program.0.id()))
    }));
    work.sample();
    assert!(work.turned.is_some());
    // On a busy machine this test may be late itself.
    assert!((0..200).any(|_| {
        work.turned = Some(Instant::now());
        work.activity() == Activity::Computing
    }));
    assert!(becomes(&mut work, Activity::Resting));
}

#[test]
fn whose_children_come_and_go_while_nobody_acts_is_not_at_work_for_it() {
    let program = Program::run("while :; do sleep 0.01; done");
    let mut work = program.work();
    work.sample();
    assert!((0..200).any(|_| {
        sleep(SHORTEST_REST);
        work.take_stock();
        sleep(LOOKBACK);
        work.sample();
        work.turned.is_none() && work.ambient.parents == HashSet::from([program.0.id()])
    }));
}

#[test]
fn files_beyond_the_limit_are_opened_each_time() {
    let program = Program::run("exec sleep 60");
    let open = || File::open("/proc/self/schedstat").expect("a file of ours");
    let kept: Vec<Kept> = std::iter::from_fn(|| Kept::new(open()).ok()).collect();
    assert!(kept.len() <= MAX_OPEN);
    let mut member = Member::new(program.0.id(), program.0.id());
    assert!(member.done().is_some());
    assert!(member.schedstat.is_none());
    drop(kept);
    assert!(member.done().is_some());
    assert!(member.schedstat.is_some());
}

#[test]
fn a_thread_that_is_gone_is_told_from_one_that_sleeps() {
    let mut program = Program::run("read -r _");
    let mut member = Member::new(program.0.id(), program.0.id());
    assert!(member.done().is_some());
    program.go_on();
    program.0.wait().expect("a child");
    assert!(member.done().is_none());
}

#[test]
fn what_it_does_while_nobody_acts_does_not_count() {
    let program = Program::run("while :; do :; done");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Computing));
    // Its wait for a processor is reported later: on a busy machine the usual level may be measured too low.
    assert!((0..200).any(|_| {
        sleep(SHORTEST_REST);
        work.take_stock();
        activity_of_the_next(LOOKBACK, &mut work) != Activity::Computing
    }));
}

#[test]
fn what_has_computed_and_ended_has_handed_something_on() {
    let mut program = Program::run("sh -c 'while :; do :; done' & read -r _; kill $!; wait; exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Computing));
    let child = work.members.iter().map(|member| member.process).find(|&process| process != program.0.id());
    let child = child.expect("a child that computes");
    // Its wait for a processor is reported later.
    assert!((0..200).any(|_| {
        sleep(SHORTEST_SPAN);
        work.sample();
        work.has_computed(child, child)
    }));
    program.go_on();
    assert!((0..2000).any(|_| {
        sleep(SHORTEST_SPAN);
        !fs::exists(format!("/proc/{child}")).expect("a path")
    }));
    assert!(work.ended.is_none());
    work.sample();
    assert!(work.ended.is_some());
    // On a busy machine this test may be late itself.
    assert!((0..200).any(|_| {
        work.ended = Some(Instant::now());
        work.activity() == Activity::Computing
    }));
    assert!(becomes(&mut work, Activity::Resting));
}

#[test]
fn for_a_while_after_that_the_main_thread_owes_an_answer() {
    let program = Program::run("while :; do :; done");
    let (pid, mut work) = (program.0.id(), program.work());
    work.ambient.rates.insert(pid, Rate { share: 100.0, wakes: 0.0 });
    work.ambient.stirring.insert((pid, pid));
    let mut activity_after = |ended: Option<Duration>| {
        work.ended = None;
        work.sample();
        sleep(LOOKBACK);
        work.ended = ended.and_then(|time| Instant::now().checked_sub(time));
        work.activity()
    };
    // On a busy machine this test may be late itself.
    assert!((0..200).any(|_| activity_after(Some(2 * HANDED_ON)) == Activity::Computing));
    assert_ne!(activity_after(Some(AFTERMATH)), Activity::Computing);
    assert_ne!(activity_after(None), Activity::Computing);
}

#[test]
fn what_sleeps_and_ends_has_handed_nothing_on() {
    let mut program = Program::run("sleep 60 & read -r _; kill $!; wait; exec sleep 60");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Resting));
    let child = work.members.iter().map(|member| member.process).find(|&process| process != program.0.id());
    let child = child.expect("a child that sleeps");
    // Starting was work, and so is ending.
    work.samples.clear();
    work.sample();
    sleep(LOOKBACK);
    work.sample();
    program.go_on();
    assert!((0..2000).any(|_| {
        sleep(SHORTEST_SPAN);
        !fs::exists(format!("/proc/{child}")).expect("a path")
    }));
    work.sample();
    assert!(work.samples.back().is_some_and(|last| last.threads.iter().all(|thread| thread.process != child)));
    assert!(work.ended.is_none());
}

#[test]
fn a_thread_that_has_slept_is_news_where_others_are_awake() {
    let begun = Instant::now();
    let sample = |milliseconds: u64, threads: &[(u32, u32, u64)]| {
        let done = |awake| Done { awake: Duration::from_millis(awake), wakes: 0 };
        let threads = threads.iter().map(|&(process, id, awake)| Thread { process, id, done: done(awake) });
        let at = begun + Duration::from_millis(milliseconds);
        Sample { begun: at, at, threads: threads.collect() }
    };
    let earlier = sample(0, &[(1, 1, 0), (1, 2, 0), (3, 3, 0), (3, 4, 0), (5, 5, 0)]);
    let now = sample(100, &[(1, 1, 90), (1, 2, 0), (3, 3, 90), (3, 6, 0), (5, 5, 40)]);
    let ambient = Ambient::between(&earlier, &now);
    let later = sample(200, &[(1, 1, 180), (1, 2, 50), (1, 7, 50), (3, 3, 180), (3, 6, 50), (5, 5, 80), (8, 8, 50)]);
    let news: Vec<u32> =
        later.threads.iter().filter(|thread| ambient.is_news(thread)).map(|thread| thread.id).collect();
    // Of the first process all but the one that is always awake; of one whose threads come and go none.
    assert_eq!(news, [2, 7, 5, 8]);
}

#[test]
fn a_program_that_wakes_with_every_frame_ticks() {
    let program = Program::run("exec python3 -c 'import time\nwhile True: time.sleep(0.016)'");
    assert!(becomes(&mut program.work(), Activity::Ticking));
}

#[test]
fn ticks_while_nobody_acts_do_not_count() {
    let program = Program::run("exec python3 -c 'import time\nwhile True: time.sleep(0.016)'");
    let mut work = program.work();
    assert!(becomes(&mut work, Activity::Ticking));
    sleep(SHORTEST_REST);
    work.take_stock();
    assert!(becomes(&mut work, Activity::Resting));
}

#[test]
fn an_answer_that_does_not_come_is_told_of_a_program_that_ticks_too() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let line = format!("line = socket.create_connection((\"127.0.0.1\", {port}))\nline.send(b\"x\")");
    let script = format!("import socket, time\n{line}\nwhile True: time.sleep(0.016)");
    let mut program = Program::run(&format!("read -r _; exec python3 -c '{script}'"));
    let mut work = program.work();
    work.take_stock();
    program.go_on();
    assert!(becomes(&mut work, Activity::Awaiting));
    assert!(becomes(&mut work, Activity::Timed));
}

#[test]
fn we_are_not_our_programs_family() {
    let program = Program::run("exec sleep 60");
    assert_eq!(program.work().root, Some(program.0.id()));
}

#[test]
fn a_main_thread_that_has_just_fallen_asleep_is_looked_at_again() {
    let mut program = Program::run("read -r _; sleep 60");
    let mut work = program.work();
    work.inbox = Some((Sleeper::new(program.0.id()), None));
    assert!(becomes(&mut work, Activity::Resting));
    work.take_stock();
    program.go_on();
    let mut main = Sleeper::new(program.0.id());
    assert!((0..2000).any(|_| {
        sleep(Duration::from_millis(1));
        main.sleep() == Sleep::Child
    }));
    // The child is no news any more, and the sleep is none yet.
    assert_eq!(activity_of_the_next(IN_TURN + SHORTEST_SPAN, &mut work), Activity::Computing);
    assert_eq!(activity_of_the_next(ASLEEP, &mut work), Activity::Computing);
}

#[test]
fn what_polls_is_not_taken_for_asleep() {
    let program = Program::run("exec python3 -c 'import time\nwhile True: time.sleep(0.008)'");
    let mut work = program.work();
    work.inbox = Some((Sleeper::new(program.0.id()), None));
    assert!(becomes(&mut work, Activity::Resting) || becomes(&mut work, Activity::Ticking));
}

mod timers;
