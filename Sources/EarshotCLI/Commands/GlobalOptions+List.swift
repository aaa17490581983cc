import EarshotClient

extension GlobalOptions {
    /// Prints a list. With `watch`, then prints the wanted events until the command ends; with `--json` as well, only these.
    func list<Value: Sendable>(
        watch: Bool, _ read: @escaping @Sendable (ControlClient) async throws -> ControlReply<Value>,
        show: @escaping @Sendable (Value, ControlClient) async throws -> Void,
        where isWanted: @escaping @Sendable (ControlAPI.Event) -> Bool
    ) async throws {
        let isJSON = self.json
        try await self.withClient { client in
            // Subscribes before listing, so that no event is missed in between.
            let events = watch ? try await client.watch() : nil
            if !(watch && isJSON) {
                let reply = try await read(client)
                if isJSON { try Standard.write(json: reply.json) } else { try await show(reply.value, client) }
            }
            try await events?.show(json: isJSON, where: isWanted)
        }
    }
}
