import EarshotClient
import Foundation
import Testing

@testable import EarshotCLI

/// What an interrupted `earshot file send` cancels.
@Suite struct CancellingTests {
    private let row = ControlAPI.Resource(
        id: "r", direction: .known(.outgoing), peerID: "P", peerName: "bob", name: "a.iso", kind: .known(.file), size: 2, transferred: 1,
        bytesPerSecond: 1, state: .known(.transferring), createdAt: .distantPast)

    /// It goes on with the file when it is back: that is an error, so that it is said.
    @Test func aDaemonThatIsAwayCancelsNothing() async throws {
        let row = self.row
        try await ControlClient.with(socketPath: "/nowhere") { client in
            do throws(ControlError) {
                try await FileUpload.cancel([row, row], client)
                Issue.record("it was taken for cancelled")
            } catch {
                #expect(CommandFailure(error).status == .noDaemon)
            }
        }
    }

    @Test func thereIsNothingToCancel() async throws {
        try await ControlClient.with(socketPath: "/nowhere") { client in try await FileUpload.cancel([], client) }
    }
}
