//! `docs/gates.md` agrees with the table of gates.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_engine::gates;
use headtime_sched::PolicyInfo;
use headtime_testkit::Page;

const INTRO: &str = "\
<!-- Written by crates/engine/tests/it/docs.rs from the table of gates; HEADTIME_BLESS=1 writes it anew. -->
# Gates

A gate stands between the scheduler and the drive. The scheduler says which request is next; the gate says whether it may go now.
A drive with a queue serves what is soonest done and can leave a command for seconds; what a gate holds back, the drive cannot prefer.

A gate is named the same way in a flag, a scenario, a configuration, a log and a result:

```text
NAME[:OPTION=VALUE]...          head-time
                                rsd:age_th=30
                                rsd-priority:age_th=90:ranks=1/2/3
                                windows(rsd:age_th=30):lanes=4
```

A request has a class: `real-time`, `best-effort` or `idle`. In a scenario a workload or a program has it, in a server an export. A gate can have
a lane for each level of classes. Each lane has a scheduler of its own, of the kind that the engine has, and merging stays within a lane. A
request that must wait for one of another lane, because they overlap, gives that one its lane.

The *delay count* of a command is how many commands that went to the drive later were completed earlier. Flushes pass every gate: order has
emptied the drive for them.

A gate can be changed in flight, see [serve](serve.md#signals-exit-codes). With nothing but another `age_th` it keeps what it knows of the commands in the
drive. Else a new gate begins, which takes them as sent at that moment, and each lane gets a new scheduler. Bounds hold from then on.

`head-time` without options is what to take against starvation. Why, and where it falls short: [note](design/2026-11-28-head-time.md).

What gates cost and what becomes of the tail, on recorded traces: [replays](replays/README.md#gates-and-tails).
";

#[test]
fn the_page_is_up_to_date() {
    let page = Page {
        file: "gates.md",
        package: "headtime-engine",
        intro: INTRO,
        bound: "bound",
    };
    let table: Vec<&'static PolicyInfo> = gates().collect();
    let bless = std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1");
    page.check(&table, bless);
}
