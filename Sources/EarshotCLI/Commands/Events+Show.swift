import EarshotClient

extension ControlEvents {
    /// Prints a line for each wanted event until the command ends; gaps and unreadable parts are always printed. `names` are the known
    /// peers' names by id; events about peers add to them.
    func show(json: Bool, names: [PeerID: String] = [:], where isWanted: (ControlAPI.Event) -> Bool) async throws {
        Standard.endWithReader()
        var names = names
        for try await event in self where isWanted(event.value) || event.type == .gap || !event.unreadable.isEmpty {
            if let peer = event.peer { names[peer.id] = peer.name }
            if json {
                try Standard.write(json: event.json)
            } else {
                try Standard.write(Render.event(event.value, names: names))
            }
        }
    }
}
