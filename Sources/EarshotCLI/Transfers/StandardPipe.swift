import Glibc

/// The pipes that connect this process with its neighbours.
enum StandardPipe {
    /// What a pipe may hold, in bytes: as much as the kernel gives to an unprivileged process.
    private static let capacity: CInt = 1024 * 1024

    /// fcntl(2)'s F_SETPIPE_SZ, which the library's Swift overlay leaves out.
    private static let setPipeSize: CInt = 1031

    /// Lets a pipe hold more than the usual 64 KiB, so that both ends switch less often; nothing where it is no pipe.
    static func enlarge(_ descriptor: CInt) {
        _ = fcntl(descriptor, Self.setPipeSize, Self.capacity)
    }
}
