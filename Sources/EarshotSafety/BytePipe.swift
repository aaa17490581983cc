internal import CLinux
import Glibc

/// Moves bytes from one descriptor to another through a pipe, within the kernel (splice(2)), so that this process copies none of them. If a
/// descriptor does not support that (an old kind of terminal, or a file opened for appending), the bytes go through memory.
///
/// Only one thread may use it. A lost connection raises SIGPIPE unless the process ignores that.
package final class BytePipe {
    /// The requested capacity in bytes: the most that the kernel gives to an unprivileged process.
    private static let size: CInt = 1024 * 1024
    /// The most bytes that are copied at once through memory.
    private static let copied = 256 * 1024

    /// The capacity in bytes, which is also the most that is moved at once.
    package let capacity: Int
    private let input: CInt
    private let output: CInt
    private var canFill = true
    private var canDrain = true
    private var copy: UnsafeMutableRawBufferPointer?

    /// - Throws: `FileError` if the process, or the system, has too many descriptors.
    package init() throws(FileError) {
        var ends: [CInt] = [-1, -1]
        let capacity = earshot_pipe(&ends, Self.size)
        guard capacity > 0 else { throw FileError("make", "a pipe") }
        (self.input, self.output, self.capacity) = (ends[1], ends[0], Int(capacity))
    }

    deinit {
        close(self.input)
        close(self.output)
        self.copy?.deallocate()
    }

    /// Moves available bytes of the descriptor into the empty pipe. Returns their number, 0 at the end, or -1 with errno set.
    package func fill(from descriptor: CInt, upTo limit: Int = .max) -> Int {
        if self.canFill {
            let count = earshot_splice(descriptor, self.input, min(limit, self.capacity))
            guard count < 0, errno == EINVAL else { return count }
            self.canFill = false
        }
        // These bytes go into the pipe too, so that the draining side need not distinguish.
        let space = self.memory()
        var count = Glibc.read(descriptor, space.baseAddress, min(limit, space.count))
        while count < 0, errno == EINTR { count = Glibc.read(descriptor, space.baseAddress, min(limit, space.count)) }
        guard count > 0 else { return count }
        return self.fill(with: UnsafeRawBufferPointer(rebasing: space[..<count])) ? count : -1
    }

    /// Writes bytes, at most `capacity`, into the empty pipe. Returns `false` with errno set if that failed.
    package func fill(with bytes: UnsafeRawBufferPointer) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = Glibc.write(self.input, bytes.baseAddress?.advanced(by: written), bytes.count - written)
            if count >= 0 { written += count } else if errno != EINTR { return false }
        }
        return true
    }

    /// Moves at most `count` bytes out of the pipe. Returns their number, or -1 with errno set.
    package func drain(_ count: Int, to descriptor: CInt) -> Int { earshot_splice(self.output, descriptor, count) }

    /// Fills `space` with bytes out of the pipe, which holds as many. Returns `false` with errno set if that failed.
    package func drain(into space: UnsafeMutableRawBufferPointer) -> Bool {
        var taken = 0
        while taken < space.count {
            let count = Glibc.read(self.output, space.baseAddress?.advanced(by: taken), space.count - taken)
            if count > 0 { taken += count } else if count == 0 || errno != EINTR { return false }
        }
        return true
    }

    /// Moves `count` bytes out of the pipe, waiting as needed. `wait` returns when the descriptor may take bytes, or `false` to end the
    /// call. Returns 0, or the errno: `ECANCELED` if `wait` ended the call.
    package func drain(all count: Int, to descriptor: CInt, wait: (CInt) -> Bool = BytePipe.waitForRoom) -> CInt {
        var left = count
        while left > 0 {
            guard self.canDrain else { return self.copy(left, to: descriptor, wait) }
            let moved = earshot_splice(self.output, descriptor, left)
            if moved > 0 {
                left -= moved
                continue
            }
            switch errno {
            case EAGAIN: if !wait(descriptor) { return ECANCELED }
            case EINVAL: self.canDrain = false
            case let code: return code
            }
        }
        return 0
    }

    private func copy(_ count: Int, to descriptor: CInt, _ wait: (CInt) -> Bool) -> CInt {
        let space = self.memory()
        var left = count
        while left > 0 {
            let taken = Glibc.read(self.output, space.baseAddress, min(left, space.count))
            guard taken > 0 else { return taken < 0 ? errno : EIO }
            let code = Self.write(UnsafeRawBufferPointer(rebasing: space[..<taken]), to: descriptor, wait: wait)
            guard code == 0 else { return code }
            left -= taken
        }
        return 0
    }

    /// Writes all bytes, waiting as needed. `wait` and the result are those of ``drain(all:to:wait:)``.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: CInt, wait: (CInt) -> Bool = BytePipe.waitForRoom
    ) -> CInt {
        var written = 0
        while written < bytes.count {
            let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
            if count >= 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: break
            case EAGAIN: if !wait(descriptor) { return ECANCELED }
            case let code: return code
            }
        }
        return 0
    }

    /// Waits without a limit until the descriptor may take bytes.
    package static func waitForRoom(_ descriptor: CInt) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&waiting, 1, -1)
        return true
    }

    private func memory() -> UnsafeMutableRawBufferPointer {
        if let copy { return copy }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: min(Self.copied, self.capacity), alignment: 4096)
        self.copy = copy
        return copy
    }
}
