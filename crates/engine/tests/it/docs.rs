//! `docs/gates.md` agrees with the table of gates.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_engine::gates;
use headtime_sched::PolicyInfo;
use headtime_testkit::Page;

const INTRO: &str = "\
<!-- Written by crates/engine/tests/it/docs.rs from the table of gates; HEADTIME_BLESS=1 writes it anew. -->
# Gates

A gate stands between the scheduler and the drive. The scheduler chooses the next request, and the gate decides if the request may go now.
A drive with a queue serves near commands first, and can leave a command for seconds. The drive cannot prefer a command that the gate holds back.

A gate is named the same way in a flag, a scenario, a configuration, a log and a result:

```text
NAME[:OPTION=VALUE]...          head-time
                                rsd:age_th=30
                                rsd-priority:age_th=90:ranks=1/2/3
                                windows(rsd:age_th=30):lanes=4
```

A request has a class: `real-time`, `best-effort` or `idle`. Set the class of a workload or program in a scenario, and of an export in a server. A gate can have
a lane for each class. Each lane has a scheduler of its own, and requests merge within a lane. If a request has to wait for a request of another lane
that overlaps, both use the lane that goes first.

The *delay count* of a command is the number of later commands that completed earlier. Flushes pass every gate, since the drive is empty then.

A running server can change its gate ([serve](serve.md#signals-exit-codes)). If `age_th` alone differs, the gate keeps the ages of the commands in the drive.
Otherwise a new gate starts, and each lane gets a new scheduler. The new gate counts the commands in the drive as sent at that moment, so its bounds hold from then on.

Use `head-time` without options against starvation. The [note](design/2026-11-28-head-time.md) has its rule and its limits.

Costs of gates, and the tail, on recorded traces: [replays](replays/README.md#gates-and-tails).
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
