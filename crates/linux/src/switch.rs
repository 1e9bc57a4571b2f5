//! Errors of the switches of a disk.

/// Reason for which a switch of a disk is not known, or cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The disk, or the kind of disk, has no such switch.
    #[error("there is no such switch: {0}")]
    Absent(&'static str),
    /// The device takes no commands of this set.
    #[error("the device takes no {0} commands")]
    Foreign(&'static str),
    #[error(
        "commands to the disk itself are not permitted: they need CAP_SYS_RAWIO, for an ATA disk CAP_SYS_ADMIN, too, and not in a \
         user namespace. Run it as root, outside of a container that has not been given them"
    )]
    NotPermitted,
    /// The disk, the connection to the disk, or the kernel has not executed a command.
    #[error("{command}: {why}")]
    Failed {
        command: &'static str,
        /// Message of the disk or the kernel.
        why: String,
    },
    /// The disk has executed the command, and nothing has changed.
    #[error("the disk took the command and left it as it is")]
    Left,
}
