internal import CLinux
internal import Glibc
internal import NIOCore

/// The credentials of the process at the other end of a connection, as the kernel reports them. No user directory is queried, because a
/// query could be slow.
struct Caller: Sendable, Hashable {
    let userID: uid_t
    let groupID: gid_t
    /// The process's supplementary groups.
    var groups: [gid_t] = []

    /// Returns the credentials that the peer had when it connected (unix(7), `SO_PEERCRED` and `SO_PEERGROUPS`). Call this on the channel's
    /// event loop.
    static func of(_ channel: any Channel) throws -> Caller {
        let caller = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { socket in
            var credentials = earshot_ucred()
            var size = socklen_t(MemoryLayout<earshot_ucred>.size)
            guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else {
                throw IOError(errnoCode: errno, reason: "getsockopt(SO_PEERCRED)")
            }
            return Caller(userID: credentials.uid, groupID: credentials.gid, groups: Self.groups(at: socket))
        }
        guard let caller else { throw ChannelError.operationUnsupported }
        return caller
    }

    /// Returns the supplementary groups of the process at the other end of a socket, or none if the kernel does not report them.
    static func groups(at socket: CInt) -> [gid_t] {
        var count: UInt32 = 64
        // The groups of a connected socket do not change, so the second buffer has the right size.
        for _ in 0..<2 {
            var groups = [gid_t](repeating: 0, count: Int(count))
            if earshot_peer_groups(socket, &groups, &count) == 0 { return Array(groups.prefix(Int(count))) }
            guard errno == ERANGE else { return [] }
        }
        return []
    }
}

/// The rule for callers of the API: the daemon's own user, root, and the members of the group that `control.group` sets (`group` in
/// earshotd.conf(5)) may call it.
struct CallerPolicy: Sendable {
    /// The daemon's own user.
    let owner: uid_t
    /// The group's id, if a group is set.
    let group: gid_t?

    /// Whether this caller may use the API.
    func admits(_ caller: Caller) -> Bool {
        if caller.userID == self.owner || caller.userID == 0 { return true }
        guard let group = self.group else { return false }
        return caller.groupID == group || caller.groups.contains(group)
    }

    /// Whether this caller may name a path. The daemon opens paths with its own rights, so only a caller with the same rights may.
    func mayNamePaths(_ caller: Caller) -> Bool { caller.userID == self.owner }

    /// Returns the id of a group, or `nil` if no group has the name.
    static func groupID(named name: String) -> gid_t? {
        var entry = GroupEntry()
        var result: UnsafeMutablePointer<GroupEntry>?
        var buffer = [CChar](repeating: 0, count: 64 * 1024)
        // A group in a user directory can have very many members, and the buffer must hold all their names.
        while true {
            let code = buffer.withUnsafeMutableBufferPointer { getgrnam_r(name, &entry, $0.baseAddress, $0.count, &result) }
            if code == EINTR { continue }
            guard code == ERANGE, buffer.count < Self.groupLimit else { return code == 0 && result != nil ? entry.gr_gid : nil }
            buffer = [CChar](repeating: 0, count: buffer.count * 2)
        }
    }

    /// The most bytes that a group's entry may take: some hundred thousand members.
    private static let groupLimit = 8 * 1024 * 1024
}

/// The C struct, apart from our property of the same name.
private typealias GroupEntry = Glibc.group
