internal import Glibc

/// The three standard descriptors of a process. If the parent has closed one, its number goes to the next opened file: text for the user
/// would then be written into a socket, or a socket read as user input.
package enum StandardDescriptors {
    /// Opens those that are closed in a way that makes their use fail (`EBADF`). Must be called before anything else is opened.
    package static func fill() {
        for descriptor: CInt in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one. The mode is the direction that is never used.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
