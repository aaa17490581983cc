internal import Glibc

/// The three descriptors that every process is given. The number of one that its parent has closed goes to whatever is opened next: what was
/// meant for a person would be written into a socket, and a socket read for what a person has typed.
package enum StandardDescriptors {
    /// Fills those that are closed, so that using them fails (`EBADF`). Called before anything else is opened.
    package static func fill() {
        for descriptor: CInt in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // It gets the lowest free number, which is this one; and is opened for the direction that is never used.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
