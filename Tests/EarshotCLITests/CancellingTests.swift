import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The transfers that an interrupted `earshot file send` cancels.
@Suite struct CancellingTests {
    private let row = ControlAPI.Resource(
        id: "r", direction: .known(.outgoing), peerID: "P", peerName: "bob", name: "a.iso", kind: .known(.file), size: 2, transferred: 1,
        bytesPerSecond: 1, state: .known(.transferring), createdAt: .distantPast)

    /// A daemon that is away resumes the transfer when it returns, so this is reported as an error.
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
