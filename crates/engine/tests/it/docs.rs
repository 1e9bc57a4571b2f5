//! `docs/gates.md` agrees with the table of gates.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_engine::gates;
use headtime_sched::PolicyInfo;
use headtime_testkit::Page;

const INTRO: &str = "\
<!-- Written by crates/engine/tests/it/docs.rs from the table of gates; HEADTIME_BLESS=1 writes it anew. -->
# Gates

A gate stands between the scheduler and the drive, and decides if a request may go now. A drive with a queue serves near commands first, and can
leave a command for seconds. The drive cannot prefer a command that the gate holds back. Use `head-time` without options against starvation
([note](design/2026-11-28-head-time.md)).

```text
NAME[:OPTION=VALUE]...          head-time
                                rsd:age_th=30
                                rsd-priority:age_th=90:ranks=1/2/3
                                windows(rsd:age_th=30):lanes=4
```

A request has a class: `real-time`, `best-effort` or `idle`, of a workload, program or export. A gate can have a lane for each class, with a
scheduler of its own. If a request waits for an overlapping one of another lane, both use the lane that goes first. Flushes pass every gate.

The *delay count* of a command is the number of later commands that completed earlier. A running server can
[change its gate](serve.md#signals-exit-codes); commands in the drive count as sent at that moment, unless `age_th` alone differs.

[Replays](replays/README.md) show the costs of gates on recorded traces.
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
