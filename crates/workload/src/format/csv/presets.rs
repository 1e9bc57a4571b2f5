//! Named descriptions of columns for public traces and tools.
//!
//! docs/traces.md gives the sources of the layouts. A test compares that document with this table.

/// A named description of columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Preset {
    /// Name of the preset, as in `--trace-format fiu`.
    pub name: &'static str,
    /// Descriptions in the notation of [`CsvColumns`](crate::CsvColumns). The first description that
    /// fits a line of the file is used.
    pub layouts: &'static [&'static str],
}

/// All presets.
pub static PRESETS: [Preset; 8] = [
    // The name of a process may have blanks, so columns are counted from the right. With -Q, biosnoop
    // adds the time in the queue, which is not part of the latency.
    Preset {
        name: "biosnoop",
        layouts: &[
            "completion=1:s,process_name=2..-7,process=-6,device=-5:name,op=-4,address=-3:sectors,size=-2:bytes,response=-1:ms,separator=blank",
            "completion=1:s,process_name=2..-8,process=-7,device=-6:name,op=-5,address=-4:sectors,size=-3:bytes,response=-1:ms,separator=blank",
        ],
    },
    Preset {
        name: "iotracer",
        layouts: &[
            "completion=1:date,process_name=3,address=4:sectors,op=5,size=6:bytes,response=7:ms,process=8,separator=comma",
        ],
    },
    Preset {
        name: "fiu",
        layouts: &[
            "time=1:ns,process=2,process_name=3,address=4:sectors,size=5:sectors,op=6,device=7+8,separator=blank",
        ],
    },
    Preset {
        name: "spc",
        layouts: &["device=1,address=2:sectors,size=3:bytes,op=4,time=5:s,separator=comma"],
    },
    Preset {
        name: "alibaba",
        layouts: &["device=1,op=2,address=3:bytes,size=4:bytes,time=5:us,separator=comma"],
    },
    Preset {
        name: "tencent",
        layouts: &["time=1:s,address=2:sectors,size=3:sectors,op=4:read0,device=5,separator=comma"],
    },
    Preset {
        name: "systor",
        layouts: &[
            "time=1:s,response=2:s,op=3:optional,device=4,address=5:bytes,size=6:bytes,separator=comma",
        ],
    },
    // %M %m %d %a %S %n %T.%t; %T %t %d %S %n ?? %a; %T.%t %a %d %S %n %p.
    Preset {
        name: "blkparse-f",
        layouts: &[
            "device=1+2,op=3,action=4,address=5:sectors,size=6:sectors,time=7:s,separator=blank",
            "time=1:s+2:ns,op=3,address=4:sectors,size=5:sectors,action=7,separator=blank",
            "time=1:s,action=2,op=3,address=4:sectors,size=5:sectors,process=6,separator=blank",
        ],
    },
];

impl Preset {
    /// Finds the preset of this name.
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns true if the lines of the preset are events of requests.
    pub(crate) fn has_events(&self) -> bool {
        self.layouts.iter().any(|layout| layout.contains("action="))
    }
}
