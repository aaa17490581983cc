import EarshotClient

/// What `earshot file list --watch` does at a terminal: a line for each beginning and end, and one that is drawn over for all that moves in
/// between.
struct WatchedFiles {
    /// One thing to do.
    enum Step: Hashable, Sendable {
        /// Takes away the line that is drawn over: what is printed would begin behind it.
        case clear
        case print(String)
        case draw(name: String, [ControlAPI.Resource])
    }

    /// The group whose files are watched; `nil` for all files.
    private let group: String?
    private var moving: [String: ControlAPI.Resource] = [:]

    init(of group: String?) { self.group = group }

    /// What an event has the terminal show, in this order.
    mutating func steps(after event: ControlAPI.Event, isReadable: Bool) -> [Step] {
        let line = [Step.clear, .print(Render.event(event))]
        guard let resource = event.resource else { return event.type == .gap || !isReadable ? line : [] }
        guard self.group == nil || self.group == resource.group?.id else { return [] }
        let isMoving = resource.state == .transferring
        self.moving[resource.id] = isMoving ? resource : nil
        let told = event.type != .resourceProgress || !isMoving ? line : []
        guard let one = self.moving.values.first else { return told }
        let name = self.moving.count == 1 ? one.name : Words.count(self.moving.count, "file")
        return told + [.draw(name: name, Array(self.moving.values))]
    }
}
