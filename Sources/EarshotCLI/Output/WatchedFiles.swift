import EarshotClient

/// The output of `earshot file list --watch` on a terminal: a line for each start and end, and one progress line, redrawn in place, for all
/// transfers in progress.
struct WatchedFiles {
    /// One change of the terminal.
    enum Step: Hashable, Sendable {
        /// Removes the progress line, so that printed lines do not begin after it.
        case clear
        case print(String)
        case draw(name: String, [ControlAPI.Resource])
    }

    /// The group whose files are watched; `nil` for all files.
    private let group: GroupID?
    private var moving: [ResourceID: ControlAPI.Resource] = [:]

    init(of group: GroupID?) { self.group = group }

    /// Returns the steps that show an event, in their order.
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
