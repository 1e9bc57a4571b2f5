//! Hosts that cannot be.

use crate::disk::{DISK, builder, process};
use headtime_host::{File, HostBuilder, HostError, HostSpec};
use headtime_units::{Bytes, Extent, Nanos, Sectors};

fn refused(change: impl FnOnce(&mut HostSpec)) -> String {
    let mut spec = HostSpec::default();
    change(&mut spec);
    match HostBuilder::new(spec, DISK) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_spec_with_a_number_out_of_range_is_refused() {
    assert_eq!(
        refused(|spec| spec.read_ahead = Bytes(128 << 20)),
        "read_ahead is 128MiB; allowed is 0 to 64MiB"
    );
    assert_eq!(
        refused(|spec| spec.request_max = Bytes(512)),
        "request_max is 512B; allowed is 4KiB to 64MiB"
    );
    assert_eq!(
        refused(|spec| spec.chunk = Some(Bytes(6 << 10))),
        "chunk is 6KiB; allowed is 0, or a multiple of 4KiB up to 64MiB"
    );
    assert_eq!(
        refused(|spec| spec.dirty_background = 30),
        "dirty_background is 30; allowed is 0 to dirty_limit percent"
    );
    refused(|spec| spec.page_cache = Bytes(4096));
    refused(|spec| spec.dirty_limit = 101);
    assert_eq!(
        refused(|spec| spec.writeback_interval = Nanos::from_nanos(999_999)),
        "writeback_interval is 999.999us; allowed is 1ms and more"
    );
    let mut disk = DISK;
    disk.sector_bytes = 520;
    assert!(HostBuilder::new(HostSpec::default(), disk).is_err());
}

#[test]
fn files_that_do_not_fit() {
    let add = |extents: &[(u64, u64)], size| {
        let extents = extents
            .iter()
            .map(|(at, len)| Extent::at(*at, *len))
            .collect();
        builder(|_| {}).add_file(File { extents, size })
    };
    assert!(add(&[(0, 8), (1 << 23, 16)], 3 * 4096).is_ok());
    assert!(add(&[], 0).is_ok());
    let end = DISK.capacity.get();
    assert_eq!(
        add(&[(0, 8), (end - 8, 16)], 0),
        Err(HostError::OutsideDisk {
            file: 1,
            extent: Extent::at(end - 8, 16),
            capacity: Sectors::new(end),
        })
    );
    assert!(matches!(
        add(&[(u64::MAX, 8)], 0),
        Err(HostError::OutsideDisk { .. })
    ));
    assert!(matches!(
        add(&[(0, 12)], 0),
        Err(HostError::NotPages { .. })
    ));
    assert!(matches!(add(&[(0, 0)], 0), Err(HostError::NotPages { .. })));
    assert_eq!(
        add(&[(0, 8)], 4097).unwrap_err().to_string(),
        "file 1: 4097 bytes do not fit into its extents of 4096 bytes"
    );
}

#[test]
fn processes_that_cannot_be_are_refused() {
    let built = |change: &dyn Fn(&mut HostBuilder)| {
        let mut builder = builder(|_| {});
        change(&mut builder);
        builder.build(1).err().map(|error| error.to_string())
    };
    assert_eq!(built(&|_| {}).unwrap(), "a host needs at least one process");
    let add = |builder: &mut HostBuilder, program| {
        let mut process = process([]);
        process.program = program;
        builder.add_process(process);
    };
    assert_eq!(built(&|builder| add(builder, 65_535)), None);
    assert_eq!(
        built(&|builder| add(builder, 65_536)).unwrap(),
        "process 1: program 65536 is out of range; allowed is 0 to 65535"
    );
    assert_eq!(
        built(&|builder| {
            builder.add_barrier(1);
            builder.add_barrier(2);
            add(builder, 1);
        })
        .unwrap(),
        "barrier 2 is for 2 members; the host has 1 processes"
    );
    assert!(
        built(&|builder| {
            builder.add_barrier(0);
            add(builder, 1);
        })
        .is_some()
    );
    assert_eq!(
        built(&|builder| {
            builder.add_pool(0);
            add(builder, 1);
        })
        .unwrap(),
        "pool 1 has no workers"
    );
    // Names of another builder.
    let pool = {
        let mut other = builder(|_| {});
        other.add_pool(3)
    };
    assert_eq!(
        built(&|builder| {
            let mut client = process([]);
            client.served_by = Some(pool);
            builder.add_process(client);
        })
        .unwrap(),
        "pool 0 is not of this host"
    );
}

/// A benchmark without processor time may make two million steps before it waits for the disk.
#[test]
fn a_program_that_takes_no_time_for_two_million_steps_and_ends_is_no_loop() {
    let mut builder = builder(|_| {});
    let step = headtime_host::Step::Barrier(builder.add_barrier(1));
    builder.add_process(process(std::iter::repeat_n(step, 2_000_000)));
    let mut host = builder.build(1).unwrap();
    crate::disk::run(&mut host, Nanos::from_millis(1));
    assert!(host.outcome()[0].processes[0].ended.is_some());
}
