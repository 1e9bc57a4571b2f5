//! Sums up the repeats of one run as a row of a report.

use super::bound::{self, Repeat};
use super::by_name::{Names, by_name, kinds};
use super::lone::{GoalOf, Said};
use super::repeat::{KeptPromise, MadeRepeat, Scanned};
use crate::prepare::{DriveSet, Prepared};
use crate::report::{
    self, BoundErrors, CommandsRun, Confidence, CoordinatedRun, EngineCounts, FreeblockRun,
    HeadTime, MemberRun, OriginRun, PERCENTS, Percentiles, PredictionsRun, ProcessRun, ProgramRun,
    PromiseRun, Run, Spread, Suspended, TransactionsRun, VerdictChange, WaitCounts, catalogue,
    mean_of_repeats, oldest_ms, round,
};
use crate::scenario::{Cell, Header, Pace, Workload};
use headtime_disk::Part;
use headtime_disk::layout::ZoneInfo;
use headtime_engine::Predictions;
use headtime_gaps::{ClientWaits, FreeblockStats, Obstacle, Verdict};
use headtime_host::{ProcessOutcome, ProgramOutcome};
use headtime_qos::Grouped;
use headtime_sched::Origin;
use headtime_sim::{Commands, Distribution, Got};
use headtime_stack::Firmware;
use headtime_units::{Nanos, Time};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Sums up the repeats of one run.
pub fn sum_up(prepared: &Prepared, cell: &Cell, made: &[MadeRepeat]) -> Run {
    let set = &prepared.drives[cell.drive];
    let measured: Vec<_> = made.iter().map(|made| &made.report.measured).collect();
    let each = |value: &dyn Fn(&headtime_sim::Measured) -> f64| -> Vec<f64> {
        measured.iter().map(|measured| value(measured)).collect()
    };
    let interval = |value: &dyn Fn(&headtime_sim::Measured) -> f64| {
        let (mean, half) = report::mean_and_ci95(&each(value));
        (round(mean, 6), round(half, 6))
    };
    let sum = |value: &dyn Fn(&headtime_sim::Report) -> u64| -> u64 {
        made.iter().map(|made| value(&made.report)).sum()
    };
    // The sum of hundreds of repeats of years each does not fit into 64 bits of nanoseconds.
    let seconds = |span: &dyn Fn(&headtime_sim::Report) -> Nanos| {
        let spans = made.iter().map(|made| span(&made.report).as_nanos());
        round(spans.map(u128::from).sum::<u128>() as f64 / 1e9, 9)
    };
    let (throughput, throughput_half) = interval(&headtime_sim::Measured::throughput_mb_s);
    let (iops, iops_half) = interval(&headtime_sim::Measured::iops);
    let (_, mean_half) = interval(&|measured| measured.response.mean_ms());
    let (_, p99_half) = interval(&|measured| measured.response.percentile_ms(99.0));
    let (fairness, _) = interval(&headtime_sim::Measured::fairness);
    let firmware = Firmware::of(&set.profile);
    let distributions = |of: fn(&headtime_sim::Measured) -> &Distribution| -> Vec<&Distribution> {
        measured.iter().map(|measured| of(measured)).collect()
    };
    let response = distributions(|measured| &measured.response);
    let device = distributions(|measured| &measured.device);
    let calls = distributions(|measured| &measured.calls);
    let commands: Vec<&Commands> = made.iter().map(|made| &made.report.commands).collect();
    let of_spans =
        |repeats: &[&Distribution]| mean_of_repeats(repeats, |one| one.percentiles_ms(PERCENTS));
    let [of_reads, of_writes] = kinds(&measured);
    let programs_of_first = made.first().map_or(&[][..], |made| &made.programs);
    let names = programs_of_first
        .iter()
        .map(|(called, _)| called.name.as_str());
    let names = Names::of(prepared, &names.collect::<Vec<&str>>());
    let mut run = Run {
        scheduler: cell.scheduler.to_string(),
        drive: set.profile.name.clone(),
        header: Header::new(&cell.engine, firmware.name()),
        repeats: made.len() as u32,
        warm_up_s: prepared.scenario.run.warm_up.as_secs_f64(),
        requests: sum(&|report| report.measured.requests),
        reads: sum(&|report| report.measured.reads),
        failed: sum(&|report| report.measured.failed),
        unfinished: sum(&|report| report.measured.unfinished),
        oldest_unfinished_ms: oldest_ms(measured.iter().map(|one| one.oldest_unfinished)),
        simulated_s: seconds(&|report| report.measured.span()),
        throughput_mb_s: throughput,
        iops,
        fairness,
        response_ms: Spread::of(&response),
        queue_ms: Spread::of(&distributions(|measured| &measured.queue)),
        device_ms: Spread::of(&device),
        quiet_ms: Spread::of(&distributions(|measured| &measured.quiet)),
        head_time: HeadTime::of(|part| seconds(&|report| report.head_time.get(part))),
        members: members(made),
        coordinated: coordinated(made),
        ci95: (made.len() > 1).then_some(Confidence {
            throughput_mb_s: throughput_half,
            iops: iops_half,
            response_mean_ms: mean_half,
            response_p99_ms: p99_half,
        }),
        engine: EngineCounts {
            issued: sum(&|report| report.engine.issued),
            merged: sum(&|report| {
                let stats = &report.engine;
                stats.merged_back + stats.merged_front + stats.fused
            }),
            held: sum(&|report| report.engine.held_overlap + report.engine.held_flush),
            idled: sum(&|report| report.engine.idled),
            chosen: sum(&|report| report.engine.chosen),
            overtaken: sum(&|report| report.engine.overtaken),
            queued_max: made
                .iter()
                .map(|made| made.report.engine.queued_max)
                .max()
                .unwrap_or(0),
        },
        commands: CommandsRun::of(
            &commands,
            seconds(&|report| report.measured.span()),
            set.profile.geometry.sector_bytes,
        ),
        transactions: None,
        waits: WaitCounts {
            streams_established: sum(&|report| report.waits.streams_established),
            streams: sum(&|report| report.waits.streams),
            waits: sum(&|report| report.waits.waits),
            waits_won: sum(&|report| report.waits.waits_won),
            waits_lost: sum(&|report| report.waits.waits_lost),
        },
        predictions: predictions(made),
        freeblock: freeblock(made, media_rate(set)),
        promise: promise(made),
        of_reads,
        of_writes,
        by_name: by_name(&names, &measured),
        per_origin: origins(prepared, &names, &measured),
        bound: bound_of(cell, made),
        curve: response[0].cumulative(),
        percentiles: Percentiles {
            response: of_spans(&response),
            device: of_spans(&device),
            interval: mean_of_repeats(&commands, |one| one.intervals.percentiles_ms(PERCENTS)),
            calls: of_spans(&calls),
            delay: mean_of_repeats(&commands, |one| one.delays.percentiles(PERCENTS)),
        },
        recorded: match &prepared.scenario.workload {
            Workload::Replay(replay) => replay.pace != Pace::ClosedPerProcess,
            Workload::Synthetic(_) | Workload::Programs(_) => false,
        },
        programs: programs(made),
        learned: BTreeMap::new(),
        label: String::new(),
    };
    let returned: u64 = calls.iter().map(|one| one.count()).sum();
    run.transactions = (returned > 0).then(|| TransactionsRun {
        calls: returned,
        per_s: catalogue::tx_per_s(&run).map(|value| round(value, 6)),
        commands_per_call: catalogue::commands_per_tx(&run).map(|value| round(value, 6)),
        response_ms: Spread::of(&calls),
    });
    run
}

/// Sums over the repeats for each disk of an array; empty for one disk.
fn members(made: &[MadeRepeat]) -> Vec<MemberRun> {
    let count = made.first().map_or(0, |made| made.report.members.len());
    let member = |number: usize| {
        let all = || made.iter().map(move |made| &made.report.members[number]);
        let seconds = |part| {
            let spans = all().map(|member| member.head_time.get(part).as_nanos());
            round(spans.map(u128::from).sum::<u128>() as f64 / 1e9, 9)
        };
        MemberRun {
            issued: all().map(|member| member.issued).sum(),
            head_time: HeadTime::of(seconds),
        }
    };
    let several = (0..count).filter(|_| count > 1);
    several.map(member).collect()
}

/// Counts of the coordinator over all repeats.
fn coordinated(made: &[MadeRepeat]) -> Option<CoordinatedRun> {
    let mut sum: Option<CoordinatedRun> = None;
    for stats in made.iter().filter_map(|made| made.report.conducted) {
        let all = sum.get_or_insert_default();
        all.streams += stats.streams;
        all.slices += stats.slices;
        all.broken += stats.broken;
        all.dedicated_s = round(all.dedicated_s + stats.dedicated.as_secs_f64(), 9);
    }
    sum
}

fn predictions(made: &[MadeRepeat]) -> Option<PredictionsRun> {
    let mut sum: Option<Predictions> = None;
    for more in made
        .iter()
        .filter_map(|made| made.report.predictions.as_ref())
    {
        *sum.get_or_insert_default() += more;
    }
    sum.as_ref().map(PredictionsRun::of)
}

/// Bytes that pass under a head in a second of rotation, the mean over all tracks.
fn media_rate(set: &DriveSet) -> f64 {
    let layout = &set.layout;
    let cylinders = |zone: ZoneInfo| u64::from(zone.last_cylinder.0 - zone.first_cylinder.0) + 1;
    let tracks = layout.zones().map(cylinders).sum::<u64>() * u64::from(layout.heads());
    let bytes = layout.capacity().bytes(set.profile.geometry.sector_bytes);
    bytes as f64 / (tracks as f64 * set.profile.rotation.turn().as_secs_f64())
}

/// Share of the requests with a search for a gap read, below which gap reads count as suspended.
const SUSPENDED_PERCENT: f64 = 10.0;

/// Results of the background scan, averaged over the repeats.
fn freeblock(made: &[MadeRepeat], media_rate: f64) -> Option<FreeblockRun> {
    let scanned: Option<Vec<(&MadeRepeat, Scanned)>> = made
        .iter()
        .map(|made| Some((made, made.freeblock?)))
        .collect();
    let scanned = scanned?;
    let mean = |value: &dyn Fn(&MadeRepeat, &Scanned) -> f64| {
        let values = scanned.iter().map(|(made, scanned)| value(made, scanned));
        round(values.sum::<f64>() / scanned.len() as f64, 6)
    };
    let megabytes = |blocks: f64, one: &Scanned| blocks * one.block_bytes as f64 / 1e6;
    let free =
        |one: &Scanned| one.stats.blocks - one.stats.blocks_alone - one.stats.blocks_demanded;
    // Time until the last block was read, or until the end of the run.
    let took = |made: &MadeRepeat, one: &Scanned| match one.tenths[9] {
        Time::NEVER => made.report.simulated.as_secs_f64(),
        end => (end - Time::ZERO).as_secs_f64(),
    };
    let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let tenths = core::array::from_fn(|tenth| {
        let rate = |_: &MadeRepeat, one: &Scanned| {
            let from = match tenth {
                0 => Time::ZERO,
                tenth => one.tenths[tenth - 1],
            };
            let span = one.tenths[tenth].saturating_since(from).as_secs_f64();
            megabytes(one.blocks as f64 / 10.0, one) / span
        };
        let all = scanned
            .iter()
            .all(|(_, one)| one.tenths[tenth] < Time::NEVER);
        all.then(|| mean(&rate))
    });
    let suspended = |obstacle: Obstacle| {
        mean(&|_, one| {
            let all = one.stats.gaps + one.stats.suspensions();
            share(one.stats.suspended[obstacle as usize], all)
        })
    };
    let looked = |one: &Scanned| share(one.stats.gaps, one.stats.gaps + one.stats.suspensions());
    let is_suspended = scanned
        .iter()
        .all(|(_, one)| looked(one) < SUSPENDED_PERCENT);
    let gap_share = |made: &MadeRepeat, one: &Scanned| {
        let looked = looked(one);
        let waited = made.report.head_time.get(Part::Rotation).as_secs_f64() * looked / 100.0;
        let read = (free(one) * one.block_bytes) as f64;
        100.0 * read / (read + waited * media_rate)
    };
    let gap_share = mean(&gap_share);
    Some(FreeblockRun {
        gap_share_percent: (gap_share.is_finite() && !is_suspended).then_some(gap_share),
        mb_s: mean(&|made, one| {
            let read = one.stats.blocks + one.stats.read_by_others;
            megabytes(read as f64, one) / took(made, one)
        }),
        free_mb_s: mean(&|made, one| megabytes(free(one) as f64, one) / took(made, one)),
        tenths_mb_s: tenths,
        left_percent: mean(&|_, one| share(one.left, one.blocks)),
        unreadable: scanned.iter().map(|(_, one)| one.unreadable).sum(),
        ended_s: tenths[9].map(|_| mean(&took)),
        free_blocks: mean(&|_, one| free(one) as f64),
        gaps: scanned.iter().map(|(_, one)| one.stats.gaps).sum(),
        suspended_percent: Suspended {
            hit: suspended(Obstacle::Hit),
            queue: suspended(Obstacle::Queue),
            order: suspended(Obstacle::Order),
            destaging: suspended(Obstacle::Destaging),
            lost_hits: suspended(Obstacle::LostHits),
        },
        before_percent: mean(&|_, one| share(one.stats.before, one.stats.gaps)),
        with_percent: mean(&|_, one| share(one.stats.with, one.stats.gaps)),
        alone: scanned.iter().map(|(_, one)| one.stats.alone).sum(),
        steps_mean: mean(&|_, one| one.steps.sum as f64 / one.steps.count().max(1) as f64),
        steps_p50: mean(&|_, one| one.steps.at(0.5) as f64),
        steps_p90: mean(&|_, one| one.steps.at(0.9) as f64),
        steps_p99: mean(&|_, one| one.steps.at(0.99) as f64),
        steps_max: scanned
            .iter()
            .map(|(_, one)| one.steps.max)
            .max()
            .unwrap_or(0),
    })
}

/// Outcome of the scan's promises, averaged over the repeats.
fn promise(made: &[MadeRepeat]) -> Option<PromiseRun> {
    let kept: Option<Vec<(&KeptPromise, &Scanned)>> = made
        .iter()
        .map(|made| Some((made.promise.as_ref()?, made.freeblock.as_ref()?)))
        .collect();
    let kept = kept?;
    let mean = |value: &dyn Fn(&KeptPromise, &Scanned) -> f64| {
        let values = kept.iter().map(|(kept, scanned)| value(kept, scanned));
        round(values.sum::<f64>() / kept.len() as f64, 6)
    };
    let share = |of: fn(&FreeblockStats) -> u64| {
        mean(&|_, scanned| {
            let stats = &scanned.stats;
            let all = stats.blocks + stats.read_by_others;
            100.0 * of(stats) as f64 / all.max(1) as f64
        })
    };
    let ms = |span: Nanos| span.as_millis_f64();
    let of_time = |of: fn(&ClientWaits) -> Nanos| {
        mean(&|kept, _| {
            let looked = kept.waits.looked.as_secs_f64().max(1e-9);
            100.0 * of(&kept.waits).as_secs_f64() / looked
        })
    };
    let changes = kept.first()?.0.changes.iter();
    let changes = changes.map(|(at, verdict)| VerdictChange {
        at_s: round(at.as_secs_f64(), 3),
        verdict: verdict.words(),
    });
    let changes: Vec<VerdictChange> = changes.collect();
    Some(PromiseRun {
        p99_ms: mean(&|kept, _| ms(kept.waits.p99)),
        p99_without_ms: mean(&|kept, _| ms(kept.waits.p99_without)),
        p99_added_percent: mean(&|kept, _| {
            let without = ms(kept.waits.p99_without).max(1e-9);
            100.0 * (ms(kept.waits.p99) / without - 1.0)
        }),
        gaps_percent: share(|stats| stats.blocks - stats.blocks_alone - stats.blocks_demanded),
        idle_percent: share(|stats| stats.blocks_alone),
        outright_percent: share(|stats| stats.blocks_demanded),
        others_percent: share(|stats| stats.read_by_others),
        asked_percent: of_time(|waits| waits.asked),
        taken_percent: of_time(|waits| waits.taken),
        late_said: mean(&|kept, _| {
            // The first verdict is that nothing is known yet.
            let turned = |pair: &&[(Time, Verdict)]| pair[1].1.is_late() && !pair[0].1.is_late();
            kept.changes.windows(2).filter(turned).count() as f64
        }),
        verdict: changes
            .last()
            .map_or(Verdict::Unknown.words(), |last| last.verdict),
        changes,
    })
}

/// The bound of all repeats. `None` if a repeat has no bound.
fn bound_of(cell: &Cell, made: &[MadeRepeat]) -> Option<report::Bound> {
    let moved = |made: &MadeRepeat, number: u32| {
        let outcome = made.programs.iter().map(|(_, outcome)| outcome);
        let mut of = outcome.filter(|outcome| outcome.program == number);
        of.next()
            .map_or(0, |one| one.bytes_read + one.bytes_written)
    };
    let of_program: Vec<_> = made
        .iter()
        .map(|made| move |number: u32| moved(made, number))
        .collect();
    let repeats = made.iter().zip(&of_program).map(|(made, of_program)| {
        Some(Repeat {
            known: made.bound.as_ref()?,
            of_program,
        })
    });
    let repeats: Vec<Repeat<'_>> = repeats.collect::<Option<_>>()?;
    bound::sum_up(cell, &repeats)
}

fn origins(
    prepared: &Prepared,
    names: &Names,
    measured: &[&headtime_sim::Measured],
) -> Vec<OriginRun> {
    let mut by_origin: BTreeMap<Origin, Vec<&headtime_sim::PerOrigin>> = BTreeMap::new();
    for origin in measured.iter().flat_map(|measured| &measured.origins) {
        by_origin.entry(origin.origin).or_default().push(origin);
    }
    let mut of_name = vec![0_u32; names.texts().len()];
    for place in by_origin.keys().filter_map(|origin| names.place(origin)) {
        of_name[place] += 1;
    }
    by_origin
        .into_iter()
        .map(|(origin, got)| {
            let rates: f64 = got.iter().map(|got| got.throughput_mb_s()).sum();
            let all: Vec<Got> = got.iter().map(|got| got.all()).collect();
            let responses: Vec<&Distribution> = all.iter().map(|got| &got.response).collect();
            OriginRun {
                process: origin.process,
                program: origin.program,
                alone: of_name.len() > 1
                    && names
                        .place(&origin)
                        .is_some_and(|place| of_name[place] == 1),
                device: usize::from(origin.export)
                    .checked_sub(1)
                    .and_then(|export| prepared.devices.get(export).cloned()),
                requests: all.iter().map(|got| got.requests).sum(),
                unfinished: got.iter().map(|got| got.unfinished).sum(),
                oldest_unfinished_ms: oldest_ms(got.iter().map(|got| got.oldest_unfinished)),
                throughput_mb_s: round(rates / measured.len() as f64, 6),
                response_ms: Spread::of(&responses),
            }
        })
        .collect()
}

/// Results of the programs, averaged over the repeats.
fn programs(made: &[MadeRepeat]) -> Vec<ProgramRun> {
    let count = made.len() as f64;
    let seconds = |time: Time| (time - Time::ZERO).as_secs_f64();
    let mean = |values: Vec<f64>| round(values.into_iter().sum::<f64>() / count, 9);
    // `None` if one repeat has no value.
    let all = |values: Vec<Option<f64>>| values.into_iter().collect::<Option<Vec<f64>>>().map(mean);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let rate = |of: &ProgramOutcome, simulated: Nanos| {
        let end = of.ended.unwrap_or(Time::ZERO + simulated);
        let span = end.saturating_since(of.started).as_secs_f64();
        let bytes = megabytes(of.bytes_read + of.bytes_written);
        if span > 0.0 { bytes / span } else { 0.0 }
    };
    let first = made.first().map_or(&[][..], |made| &made.programs);
    (0..first.len())
        .map(|index| {
            let of: Vec<&ProgramOutcome> =
                made.iter().map(|made| &made.programs[index].1).collect();
            let with = |value: &dyn Fn(&ProgramOutcome) -> f64| {
                mean(of.iter().map(|one| value(one)).collect())
            };
            let ends = of.iter().map(|one| one.ended.map(seconds));
            let io_times = of.iter().map(|one| Some(one.io_time?.as_secs_f64()));
            let number = of[0].program;
            let goals: Vec<Option<&GoalOf>> = (made.iter())
                .map(|made| (made.goals.iter()).find(|goal| u32::from(goal.number) == number))
                .collect();
            let errors: Option<Vec<BoundErrors>> =
                goals.iter().map(|goal| (*goal)?.errors).collect();
            let bound_errors = errors.map(|errors| {
                let of = |value: fn(&BoundErrors) -> f64| mean(errors.iter().map(value).collect());
                BoundErrors {
                    error_80_percent: of(|one| one.error_80_percent),
                    error_90_percent: of(|one| one.error_90_percent),
                    server_error_90_percent: of(|one| one.server_error_90_percent),
                }
            });
            let said = |time: fn(&Said) -> Option<Time>| {
                let times = goals.iter().map(|goal| {
                    let said = (*goal)?.said.lock().unwrap_or_else(PoisonError::into_inner);
                    time(&said).map(seconds)
                });
                all(times.collect())
            };
            let (left_profile_s, hopeless_s) =
                (said(|one| one.left_profile), said(|one| one.hopeless));
            let grouped = |value: fn(&Grouped) -> (u32, u32)| {
                let shares = goals.iter().map(|goal| {
                    let said = (*goal)?.said.lock().unwrap_or_else(PoisonError::into_inner);
                    let (part, whole) = value(&said.grouped);
                    (whole > 0).then(|| f64::from(part) / f64::from(whole) * 100.0)
                });
                all(shares.collect())
            };
            let seeks_longer_percent = grouped(|of| (of.seeks_longer, of.compared));
            let shared_percent = grouped(|of| (of.shared, of.served));
            let goals = (goals.iter()).map(|goal| Some((*goal)?.run_time.as_secs_f64()));
            let late = of.iter().zip(goals.clone()).map(|(one, goal)| {
                let run = one.ended?.saturating_since(one.started).as_secs_f64();
                Some((run / goal? - 1.0) * 100.0)
            });
            let ends_of_runs = made.iter().map(|made| made.report.simulated);
            let rates = of.iter().zip(ends_of_runs).map(|(one, end)| rate(one, end));
            let processes = (0..of[0].processes.len()).map(|process| {
                let with = |value: &dyn Fn(&ProcessOutcome) -> f64| {
                    mean(
                        of.iter()
                            .map(|one| value(&one.processes[process]))
                            .collect(),
                    )
                };
                let ends = of
                    .iter()
                    .map(|one| one.processes[process].ended.map(seconds));
                ProcessRun {
                    process: of[0].processes[process].process,
                    started_s: with(&|one| seconds(one.started)),
                    ended_s: all(ends.collect()),
                    read_mb: with(&|one| megabytes(one.bytes_read)),
                    written_mb: with(&|one| megabytes(one.bytes_written)),
                }
            });
            ProgramRun {
                name: first[index].0.name.clone(),
                benchmark: first[index].0.benchmark,
                entry: first[index].0.entry,
                program: of[0].program,
                started_s: with(&|one| seconds(one.started)),
                ended_s: all(ends.collect()),
                read_mb: with(&|one| megabytes(one.bytes_read)),
                written_mb: with(&|one| megabytes(one.bytes_written)),
                throughput_mb_s: round(mean(rates.collect()), 6),
                calls: with(&|one| one.calls as f64),
                io_s: all(io_times.collect()),
                goal_s: all(goals.clone().collect()),
                late_percent: all(late.collect()),
                left_profile_s,
                hopeless_s,
                seeks_longer_percent,
                shared_percent,
                bound_errors,
                processes: processes.collect(),
            }
        })
        .collect()
}
