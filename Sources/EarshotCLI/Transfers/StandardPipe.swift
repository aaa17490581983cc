import Glibc

/// The pipes between this process and its neighbours.
enum StandardPipe {
    /// The capacity of a pipe, in bytes: the kernel's limit for an unprivileged process.
    private static let capacity: CInt = 1024 * 1024

    /// fcntl(2)'s F_SETPIPE_SZ, which Swift's Glibc overlay does not export.
    private static let setPipeSize: CInt = 1031

    /// Raises a pipe's capacity above the usual 64 KiB, so that both ends switch less often. Does nothing if the descriptor is not a pipe.
    static func enlarge(_ descriptor: CInt) {
        _ = fcntl(descriptor, Self.setPipeSize, Self.capacity)
    }
}
