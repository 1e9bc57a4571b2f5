//! A cluster: client nodes, a network, and data servers that files are striped over.
//!
//! A [`Cluster`] is a [`Source`](headtime_workload::Source) whose disk consists of the disks of all servers, one behind
//! the other. An address therefore names a server. The clients are the processes of a
//! [`HostBuilder`](crate::HostBuilder), and run on the nodes in turn. Each server is a [`Host`](crate::Host) of its
//! own, with page cache and readahead. Threads of the server carry out the messages.
//!
//! Rules, as in PVFS2 2.8.2 and ROMIO:
//!
//! - **Files.** Strip g of a file is on server g mod N, at strip g div N of the server's part. A call asks all servers
//!   that have a part of its range at the same time, and returns when all have answered.
//! - **Messages.** A read is a request and an answer with the data. A write is a request, a permission, the data and an
//!   answer. If every server's part fits one small message, a write's request contains the data. A part of more than
//!   256 KiB (a flow buffer) goes in pieces, each as a call of its own.
//! - **Links.** Each node and each server has a link in each direction. A link sends one message at a time, first come
//!   first served. A message goes through the sender's link and the receiver's at the same time, as its frames pass the
//!   switch one by one.
//! - **Server.** Each thread works on one piece at a time. Further pieces wait in the order of arrival. The thread that
//!   has been idle for longest takes the next piece. PVFS2 starts a new thread for each piece. With threads in turn, a
//!   scheduler sees as little of each thread. But a scheduler does not wait for threads that have ended, since no
//!   scheduler here is notified of an end.
//! - **Requests** carry the program and class of the client that asked, and the thread as process. Write-back is of
//!   program 0.
//! - **ClusterBarrier.** All members continue together, ceil(log2(members)) rounds of messages after the last has
//!   arrived.
//!
//! Clients have no cache. Copying data on them costs no time. Metadata, opening files, and processors that are
//! short of time are left out.

mod busy;
mod client;
mod link;
mod network;
mod source;
mod spec;
mod state;
mod stripes;

pub use spec::ClusterSpec;
pub use state::Cluster;
