internal import CLinux
import Glibc

/// A descriptor of which another process may hold a copy: its flags stay as they are. One thread reads or writes, and waits until the
/// descriptor is ready or another thread calls ``interrupt()``.
package final class PassedDescriptor: Sendable {
    /// The open file, which is closed with the last reference.
    package let file: OpenFile
    private let event: OpenFile

    /// - Throws: `FileError` if the process, or the system, has too many descriptors.
    package init(_ file: OpenFile) throws(FileError) {
        let event = earshot_event()
        guard event >= 0 else { throw FileError("wait for", file.subject) }
        self.file = file
        self.event = OpenFile(descriptor: event, subject: "an event")
    }

    /// Whether a stream can be moved through a descriptor that is passed: a pipe, which can be polled, and a file, which never waits for
    /// long. Not a terminal, whose input belongs to the job in its foreground, and not a socket or another device.
    package static func canCarryStream(_ descriptor: CInt) -> Bool {
        guard let status = FileStatus(descriptor: descriptor) else { return false }
        return switch status.kind {
        case .regular, .namedPipe: true
        case .device: status.isNull
        case .directory, .link, .socket, .other: false
        }
    }

    /// Ends a current or later wait.
    package func interrupt() { _ = [1 as UInt64].withUnsafeBytes { write(self.event.descriptor, $0.baseAddress, $0.count) } }

    /// Waits until the descriptor has bytes, or has ended. Returns `false` if the wait was interrupted.
    package func waitForBytes() -> Bool { self.wait(POLLIN) }

    /// Waits until the descriptor may take bytes, or has no reader. Returns `false` if the wait was interrupted.
    package func waitForRoom() -> Bool { self.wait(POLLOUT) }

    private func wait(_ events: Int32) -> Bool {
        var waiting = [
            pollfd(fd: self.event.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.file.descriptor, events: Int16(events), revents: 0),
        ]
        while poll(&waiting, 2, -1) < 0, errno == EINTR {}
        return waiting[0].revents == 0
    }
}
