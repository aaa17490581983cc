import EarshotClient
import EarshotSafety

extension ControlAPI.Resource {
    /// Whether the transfer has ended for good.
    var isOver: Bool {
        switch self.state {
        case .known(.completed), .known(.cancelled), .known(.failed): true
        case .known(.offered), .known(.transferring), .known(.paused), .unknown: false
        }
    }

    /// Whether the content is in the daemon's spool.
    var isFetchable: Bool { self.direction == .incoming && self.state == .completed && self.inSpool != false }

    /// Whether file listings hide the file by default, because of the name or the folder that its sender chose.
    var isHidden: Bool { self.shownName.split(separator: "/").contains { $0.utf8.first == UInt8(ascii: ".") } }

    /// The name, after the folder that the sender chose.
    var shownName: String { self.folder.map { "\($0)/\(self.name)" } ?? self.name }

    /// The path at which the daemon has published a received file.
    var publishedPath: String? { self.direction == .incoming && self.state == .completed && self.inSpool == false ? self.path : nil }
}

extension [ControlAPI.Resource] {
    /// The shortest accepted beginning of an id, in characters.
    static var idPrefixMinimum: Int { 4 }

    /// Returns the pending offer with that id or name; other transfers of the name do not count.
    func offer(_ text: String) throws(CommandFailure) -> ControlAPI.Resource {
        if let offer = try self.filter({ $0.direction == .incoming && $0.state == .offered }).named(text) { return offer }
        let hint = "list the files: earshot file list"
        guard let other = try self.named(text) else {
            throw CommandFailure(.data, "no such file: \(text.escapedForDisplay)", hint: hint)
        }
        let name = other.name.escapedForDisplay
        let reason =
            other.direction == .outgoing
            ? "was sent from this machine" : "is not waiting for an answer: it is \(Render.state(other).escapedForDisplay)"
        throw CommandFailure(.data, "\(name) \(reason)", hint: hint)
    }

    /// Returns a received file: first one in the spool, then one that the daemon has published.
    func received(_ text: String) throws(CommandFailure) -> ControlAPI.Resource {
        if let resource = try self.filter(\.isFetchable).named(text) { return resource }
        // Several published files may have had the name. A file that still exists is preferred to a file that the user has moved.
        let published = self.filter { $0.publishedPath != nil }
        let present = published.filter { $0.publishedPath.flatMap(FileStatus.init(path:)) != nil }
        if let resource = try present.named(text) { return resource }
        if let resource = try published.named(text) { return resource }
        let hint = "list the files: earshot file list"
        // None of them can be fetched. The transfer in progress explains most; otherwise the last one is named.
        let named = self.called(text, by: \.name)
        var other = named.last { $0.direction == .incoming && !$0.isOver } ?? named.last
        if other == nil { other = try self.named(text) }
        guard let other else {
            throw CommandFailure(.data, "no such file: \(text.escapedForDisplay)", hint: hint)
        }
        let name = other.name.escapedForDisplay
        if other.direction == .outgoing { throw CommandFailure(.data, "\(name) was sent from this machine, not received", hint: hint) }
        if !other.isOver {
            throw CommandFailure(.temporary, "\(name) is still being transferred", hint: "watch it: earshot file list --watch")
        }
        let what =
            other.state == .completed
            ? "was already fetched, or was replaced by a later file" : "did not arrive: it is \(Render.state(other).escapedForDisplay)"
        throw CommandFailure(.data, "\(name) \(what)", hint: hint)
    }

    /// Returns the file with that id, name, or beginning of an id, in this order. Several matches are an error.
    func named(_ text: String) throws(CommandFailure) -> ControlAPI.Resource? {
        guard !text.isEmpty else { throw CommandFailure(.usage, "the name of the file is empty") }
        let id = text.lowercased()
        if let exact = self.first(where: { $0.id.description == id }) { return exact }
        var named = self.called(text, by: \.name)
        if named.isEmpty { named = self.called(text, by: \.shownName) }
        let matches = named.isEmpty ? self.filter { $0.id.isNamed(id, atLeast: Self.idPrefixMinimum) } : named
        guard matches.count > 1 else { return matches.first }
        throw CommandFailure(
            .data, "\(text.escapedForDisplay) matches several files",
            hint: (["give the id:"] + matches.map { "  \($0.id)  \($0.name.escapedForDisplay), \($0.peerName.escapedForDisplay)" })
                .joined(separator: "\n"))
    }
}
