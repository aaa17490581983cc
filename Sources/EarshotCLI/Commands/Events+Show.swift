import EarshotClient

extension ControlEvents {
    /// Prints a line for each event that is wanted, until the command ends; gaps, and what cannot be read, always.
    func show(json: Bool, where isWanted: (ControlAPI.Event) -> Bool) async throws {
        Standard.endWithReader()
        for try await event in self where isWanted(event.value) || event.value.type == .gap || !event.unreadable.isEmpty {
            if json {
                try Standard.write(json: event.json)
            } else {
                try Standard.write(Render.event(event.value))
            }
        }
    }
}
