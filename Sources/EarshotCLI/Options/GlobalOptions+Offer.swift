import EarshotClient
import EarshotSafety

extension GlobalOptions {
    /// Answers the offer that `file` names, an id or the beginning of one or a name, and says in a word that it is `done`.
    func answerOffer(_ file: String, _ decision: ControlAPI.ResourceResponse.Decision, done: String) async throws {
        try await self.withClient { client in
            let resource = try await client.resources().value.resources.offer(file)
            let answer = try await client.respond(toOffer: resource.id, decision)
            if self.json { try Standard.write(json: answer.json) }
            Standard.note("\(done) \(resource.name.escapedForDisplay) from \(resource.peerName.escapedForDisplay)")
        }
    }
}
