import Testing

@testable import EarshotControl

/// What the client says of a name that is none.
@Suite struct ControlClientTests {
    private func failure(_ socket: String, _ call: @Sendable (ControlClient) async throws -> Void) async throws -> ControlError? {
        try await ControlClient.with(socketPath: socket) { client in
            do {
                try await call(client)
                return nil
            } catch {
                return error as? ControlError
            }
        }
    }

    /// It would be the path of another call, which no daemon is asked for.
    @Test func anEmptyNameIsNoPeers() async throws {
        let calls: [@Sendable (ControlClient) async throws -> Void] = [
            { _ = try await $0.peer("") }, { _ = try await $0.setTrust(.trusted, of: "") }, { _ = try await $0.verify("") },
            { _ = try await $0.endVerification(of: "", mismatch: true) }, { try await $0.withdraw("") },
            { try await $0.removeResource("") },
        ]
        for call in calls {
            guard case .problem(let problem)? = try await self.failure("/nowhere", call) else {
                Issue.record("it was asked for")
                continue
            }
            #expect(problem.code == "invalid-parameter")
        }
    }
}
