//! The I/O benchmark of NPB: a solver that writes its field now and then.

use super::site::{BenchmarkError, Site, add_process};
use crate::{HostBuilder, Step};
use headtime_units::{Bytes, Nanos};
use std::iter::once;

/// `btio`: processes compute, and write the field of a cubic grid after every few steps, row by row (BTIO "simple").
///
/// The number of processes is a square q². The grid has q³ cells. Each process has q cells, one in each layer: cell c of
/// process (x, y) is at (x + c, y - c, c), modulo q. A dump is the whole grid, point by point. A call writes one row of
/// one cell. All processes meet before a dump.
///
/// Rests on: NPB 3.3, BT/, for the layout of cells, the order of calls, and five numbers of 8 bytes at each point. The
/// U-Shape paper (SC 2011), section 4.4, has class A (a grid of 64), four processes, and 67 % of 223 s in computing. 40
/// dumps are every fifth of 200 steps. Trust: high for the calls, moderate for the times. Left out: reading all back at
/// the end, which is not in the benchmark's time.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct BtioSpec {
    /// Processes: a square number that divides the grid; 1 to 1024, default 4.
    pub processes: u32,
    /// Points of the grid in each direction; 1 to 1024, default 64.
    pub grid: u32,
    /// Dumps of the field; 1 to 4096, default 40.
    pub dumps: u32,
    /// Computing before each dump; default 3.735 s.
    pub compute: Nanos,
    /// Place of the file on the disk; default 0.
    pub start: Bytes,
}

impl Default for BtioSpec {
    fn default() -> BtioSpec {
        BtioSpec {
            processes: 4,
            grid: 64,
            dumps: 40,
            compute: Nanos::from_millis(3_735),
            start: Bytes(0),
        }
    }
}

/// Bytes of a point.
const POINT: u64 = 40;

impl BtioSpec {
    /// Adds the file and processes to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the file does not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("btio", builder.disk());
        let side = self.processes.isqrt();
        let square = (1..=1024).contains(&self.processes) && side * side == self.processes;
        let allowed = "a square number, 1 to 1024";
        site.check(square, "processes", self.processes, allowed)?;
        site.check_processes(builder, "processes", 1, self.processes)?;
        let whole = (1..=1024).contains(&self.grid) && self.grid.is_multiple_of(side);
        let allowed = "1 to 1024, a multiple of the square root of processes";
        site.check(whole, "grid", self.grid, allowed)?;
        site.check_count("dumps", self.dumps)?;
        site.check_distance("start", self.start)?;
        let [grid, side, dumps] = [self.grid, side, self.dumps].map(u64::from);
        let file = site.add_room(builder, self.start.0, dumps * grid * grid * grid * POINT)?;
        let barrier = builder.add_barrier(self.processes);
        let (cell, compute) = (grid / side, self.compute);
        for process in 0..u64::from(self.processes) {
            let (column, row) = (process % side, process / side);
            // Points in front of a row of a cell.
            let rows = move |dump: u64| {
                (0..side).flat_map(move |layer| {
                    let x = (column + layer) % side * cell;
                    let y = (row + side - layer) % side * cell;
                    (0..cell * cell).map(move |number| {
                        let (z, y) = (layer * cell + number / cell, y + number % cell);
                        x + grid * (y + grid * (z + grid * dump))
                    })
                })
            };
            let mut steps = (0..dumps).flat_map(move |dump| {
                let write = move |points: u64| Step::Write {
                    file,
                    offset: points * POINT,
                    len: cell * POINT,
                };
                once(Step::Think(compute))
                    .chain(once(Step::Barrier(barrier)))
                    .chain(rows(dump).map(write))
            });
            let behaviour = move || steps.next().unwrap_or(Step::Exit);
            add_process(builder, program, behaviour);
        }
        Ok(program + 1)
    }
}
