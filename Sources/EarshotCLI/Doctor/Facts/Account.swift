import Glibc

/// The system's users and groups.
enum Account {
    /// A user's name, or the number if the user has no name.
    static func user(_ id: uid_t) -> String { getpwuid(id).map { String(cString: $0.pointee.pw_name) } ?? "\(id)" }

    /// A group's name, or the number if the group has no name.
    static func group(_ id: gid_t) -> String { getgrgid(id).map { String(cString: $0.pointee.gr_name) } ?? "\(id)" }

    /// The user who runs this command.
    static func caller() -> DoctorFacts.Caller {
        let name = Self.user(geteuid())
        var ids = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        let count = getgroups(CInt(ids.count), &ids)
        ids = Array(ids.prefix(max(0, Int(count)))) + [getegid()]
        return DoctorFacts.Caller(
            name: name, isRoot: geteuid() == 0, groups: Set(ids).map(Self.group).sorted(), registeredGroups: Self.registered(name))
    }

    private static func registered(_ name: String) -> [String] {
        guard let entry = getpwnam(name) else { return [] }
        let base = entry.pointee.pw_gid
        var count: CInt = 64
        var ids = [gid_t](repeating: 0, count: Int(count))
        if getgrouplist(name, base, &ids, &count) < 0 {
            ids = [gid_t](repeating: 0, count: max(0, Int(count)))
            guard getgrouplist(name, base, &ids, &count) >= 0 else { return [] }
        }
        return ids.prefix(max(0, Int(count))).map(Self.group).sorted()
    }
}
