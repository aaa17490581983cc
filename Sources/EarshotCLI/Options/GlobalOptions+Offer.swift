import EarshotClient
import EarshotSafety

extension GlobalOptions {
    /// Answers the offer that `file` names (an id, the beginning of one, or a name), and reports it with the word `done`.
    func answerOffer(_ file: String, _ decision: ControlAPI.ResourceResponse.Decision, done: String) async throws {
        try await self.withClient { client in
            let resource = try await client.resources().resources.offer(file)
            let answer = try await client.respond(toOffer: resource.id, decision)
            if self.json { try Standard.write(json: answer.json) }
            Standard.note("\(done) \(resource.name.escapedForDisplay) from \(resource.peerName.escapedForDisplay)")
        }
    }
}
