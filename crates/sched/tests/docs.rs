//! `docs/schedulers.md` agrees with the registration table.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_sched::{PolicyInfo, policies};
use headtime_testkit::Page;

const INTRO: &str = "\
<!-- Written by crates/sched/tests/docs.rs from the table of policies; HEADTIME_BLESS=1 writes it anew. -->
# Schedulers

A scheduler is named the same way in a flag, a scenario, a configuration and a result:

```text
NAME[:OPTION=VALUE]...          deadline:read_expire=250ms:fifo_batch=8
NAME(INNER)[:OPTION=VALUE]...   of a policy that wraps another
nise(ONE@DEPTH,..)[:OPTION=..]  among schedulers, each with its depth if that is not the engine's
```

Lists are separated by commas. Durations have a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`), and are at most a day. *Overtaken* counts requests that arrived later and
were served earlier. A bound in time is for a disk that serves one request after the other.
";

#[test]
fn the_page_is_up_to_date() {
    let page = Page {
        file: "schedulers.md",
        package: "headtime-sched",
        intro: INTRO,
        bound: "bound on waiting",
    };
    let table: Vec<&'static PolicyInfo> = policies().collect();
    let bless = std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1");
    page.check(&table, bless);
}
