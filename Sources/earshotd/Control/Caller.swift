internal import CLinux
internal import Glibc
internal import NIOCore

/// Who is at the other end of a connection, by the kernel's word.
struct Caller: Sendable, Hashable {
    let userID: uid_t
    let groupID: gid_t

    /// Reads the peer's credentials (unix(7), `SO_PEERCRED`), as they were when it connected.
    static func of(_ channel: any Channel) async throws -> Caller {
        guard let provider = channel as? any SocketOptionProvider else {
            throw ChannelError.operationUnsupported
        }
        let credentials: earshot_ucred = try await provider.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET), name: SocketOptionName(SO_PEERCRED)
        ).get()
        return Caller(userID: credentials.uid, groupID: credentials.gid)
    }
}

/// Who may call: the daemon's own user, root, and the members of `control.group` where one is set (design section 7).
struct CallerPolicy: Sendable {
    /// The daemon's own user.
    let owner: uid_t
    /// The group's id, where one is set.
    let group: gid_t?

    /// Whether this caller may use the API at all.
    func admits(_ caller: Caller) -> Bool {
        if caller.userID == self.owner || caller.userID == 0 { return true }
        guard let group = self.group else { return false }
        return caller.groupID == group || Self.groups(of: caller).contains(group)
    }

    /// Whether this caller may name a path: the daemon opens it with its own rights, so only for whoever has the same.
    func mayNamePaths(_ caller: Caller) -> Bool { caller.userID == self.owner }

    /// The user's groups by the system's databases.
    private static func groups(of caller: Caller) -> [gid_t] {
        guard let name = self.userName(caller.userID) else { return [] }
        var count: Int32 = 64
        while count <= 65_536 {
            var groups = [gid_t](repeating: 0, count: Int(count))
            var found = count
            if getgrouplist(name, caller.groupID, &groups, &found) >= 0 { return Array(groups.prefix(Int(found))) }
            count *= 4
        }
        return []
    }

    private static func userName(_ id: uid_t) -> String? {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 * 1024)
        return buffer.withUnsafeMutableBufferPointer { buffer -> String? in
            guard let base = buffer.baseAddress, getpwuid_r(id, &entry, base, buffer.count, &result) == 0, result != nil,
                let name = entry.pw_name
            else { return nil }
            return String(cString: name)
        }
    }

    /// The id of a group; `nil` where there is none of the name.
    static func groupID(named name: String) -> gid_t? {
        var entry = GroupEntry()
        var result: UnsafeMutablePointer<GroupEntry>?
        var buffer = [CChar](repeating: 0, count: 64 * 1024)
        return buffer.withUnsafeMutableBufferPointer { buffer -> gid_t? in
            guard let base = buffer.baseAddress, getgrnam_r(name, &entry, base, buffer.count, &result) == 0, result != nil else {
                return nil
            }
            return entry.gr_gid
        }
    }
}

/// The C struct, apart from our property of the same name.
private typealias GroupEntry = Glibc.group
