internal import EarshotSafety
internal import Glibc

/// The reason why the control socket cannot be created.
struct SocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as one lower-case sentence.
    let description: String
}

/// The control socket's path, which this process owns through a lock file beside it.
///
/// Hummingbird unlinks any file at the path and sets no mode. Three rules make that safe. The daemon takes the lock first, so it never
/// removes the socket of another running daemon. An existing file at the path must be a socket that no process serves. The process's umask
/// is 077, so that only the owner can use the socket until `open` sets its final mode. The lock is `flock`: the kernel releases it when
/// the process ends, however it ends.
final class ControlSocket: Sendable {
    let path: String
    private let descriptor: CInt
    /// Whether the directory was made for the daemon alone, such as by systemd.
    private let ownsDirectory: Bool

    /// Takes the lock. `ownDirectory` is a directory that was made for the daemon's sockets alone.
    /// - Throws: if another process holds the lock (the error has its id), or if the path holds anything but an unused socket.
    static func claim(_ path: String, ownDirectory: String? = nil) throws(SocketError) -> ControlSocket {
        let shown = path.escapedForDisplay
        try self.makeDirectory(for: path)
        let lockPath = self.lockPath(of: path)
        let descriptor = Glibc.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let code = errno
            throw SocketError(description: "cannot open \(lockPath.escapedForDisplay): \(self.reason(code)); \(self.remedy(code))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            let holder = self.holder(descriptor)
            Glibc.close(descriptor)
            guard code == EWOULDBLOCK else {
                throw SocketError(description: "cannot lock \(lockPath.escapedForDisplay): \(self.reason(code))")
            }
            throw SocketError(
                description: "another earshotd\(holder.map { " (process \($0))" } ?? "") serves \(shown); stop it, or give another --socket"
            )
        }
        do throws(SocketError) {
            try self.checkPlace(path)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        let text = Array("\(getpid())\n".utf8)
        ftruncate(descriptor, 0)
        pwrite(descriptor, text, text.count, 0)
        return ControlSocket(path: path, descriptor: descriptor, ownDirectory: ownDirectory)
    }

    /// The directory of the socket.
    var directory: String { Self.directory(of: self.path) }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private init(path: String, descriptor: CInt, ownDirectory: String?) {
        self.path = path
        self.descriptor = descriptor
        self.ownsDirectory = ownDirectory == Self.directory(of: path)
    }

    deinit { Glibc.close(self.descriptor) }

    /// Sets the bound socket's mode: 0600, or 0660 with the group. If the directory is the daemon's own, the group gets access to it too.
    func open(to group: gid_t?) throws(SocketError) {
        if let group {
            for path in self.ownsDirectory ? [self.path, self.directory] : [self.path] where chown(path, uid_t.max, group) != 0 {
                let reason = Self.reason()
                chmod(self.path, 0o600)
                throw SocketError(
                    description: "cannot give \(path.escapedForDisplay) to group \(group): \(reason); the daemon's user must be in it")
            }
        }
        guard chmod(self.path, group == nil ? 0o600 : 0o660) == 0 else {
            throw SocketError(description: "cannot set the mode of \(self.path.escapedForDisplay): \(Self.reason())")
        }
    }

    /// Removes the socket when the daemon stops. The lock file stays: if it were removed, two processes could each hold a lock for this
    /// path.
    ///
    /// If the lock file's name belongs to another file, somebody has removed the directory's content. A newer daemon may then hold the new
    /// lock and serve its own socket at this path, so this method removes nothing.
    func remove() {
        guard let held = FileStatus(descriptor: self.descriptor), let named = FileStatus(path: Self.lockPath(of: self.path)),
            named.identity == held.identity
        else { return }
        unlink(self.path)
    }

    private static func lockPath(of path: String) -> String { path + ".lock" }

    /// Creates the directory with mode 0700 if it is missing. An existing directory is not changed.
    private static func makeDirectory(for path: String) throws(SocketError) {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        let directory = String(path[..<slash])
        if FileStatus(path: directory) != nil { return }
        try self.makeDirectory(for: directory)
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            let code = errno
            throw SocketError(
                description: "cannot make the directory \(directory.escapedForDisplay): \(self.reason(code)); \(self.remedy(code))")
        }
    }

    /// Returns the fix for a failure to create a file or a directory. To the packaged service, all directories but its own are read-only,
    /// whatever their permissions.
    static func remedy(_ code: CInt) -> String {
        code == EROFS
            ? "mount it to be written to, or give another --socket; a service must be allowed it by ReadWritePaths in its unit (systemctl edit)"
            : "give another --socket"
    }

    /// Checks that the path is free, or holds a socket that no process serves.
    private static func checkPlace(_ path: String) throws(SocketError) {
        let shown = path.escapedForDisplay
        guard let status = FileStatus(path: path) else { return }
        guard status.kind == .socket else {
            throw SocketError(description: "\(shown) exists and is not a socket; move it away, or give another --socket")
        }
        guard !self.answers(path) else {
            throw SocketError(description: "another program serves \(shown); stop it, or give another --socket")
        }
    }

    private static func answers(_ path: String) -> Bool {
        let probe = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { return false }
        defer { Glibc.close(probe) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { field in
            guard path.utf8.count < field.count else { return false }
            field.copyBytes(from: path.utf8)
            return true
        }
        guard fits else { return false }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(probe, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        // EAGAIN: a process listens and is busy.
        return result == 0 || errno == EAGAIN
    }

    private static func holder(_ descriptor: CInt) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: buffer[..<count], as: UTF8.self).prefix { $0.isNumber })
    }

    private static func reason(_ code: CInt = errno) -> String { String(cString: strerror(code)).lowercased() }
}
