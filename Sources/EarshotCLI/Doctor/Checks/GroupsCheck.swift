import EarshotClient
import EarshotSafety

extension Check {
    /// Groups with members that cannot all reach each other although they are present.
    static let groups = Check("groups") { facts in
        guard case .answers(_, _, let groups, _) = facts.daemon else { return [.skip(Self.whyNoDaemon(facts))] }
        guard !groups.isEmpty else { return [.ok("not in any group")] }
        var remarks: [Remark] = []
        for group in groups {
            let name = group.name.escapedForDisplay
            let show = "earshot group show \(group.id.description.prefix(8))"
            for member in group.members {
                guard let error = member.error else { continue }
                let reason = "\(member.name.escapedForDisplay) in \(name): \(error.message.escapedForDisplay)"
                remarks.append(.warn(reason, next: show))
            }
            let full = group.members.count { $0.state == .known(.full) }
            if full > 0 {
                let words = "\(name) has \(Words.count(full, "member")) beyond its limit; such members receive none of its messages"
                remarks.append(.warn(words, next: "see which: \(show); the group's creator can remove members"))
            }
        }
        guard remarks.isEmpty else { return remarks }
        let list = groups.map { "\($0.name.escapedForDisplay) of \($0.members.count)" }.joined(separator: ", ")
        return [.ok("in \(Words.count(groups.count, "group")): \(list)")]
    }
}
