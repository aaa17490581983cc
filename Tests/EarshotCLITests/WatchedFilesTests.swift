import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The output of `earshot file list --watch` on a terminal.
@Suite struct WatchedFilesTests {
    private func resource(_ name: String, _ state: ControlAPI.Resource.State) -> ControlAPI.Resource {
        ControlAPI.Resource(
            id: ResourceID(stringLiteral: name), direction: .known(.incoming), peerID: "P", peerName: "alice", name: "\(name).iso",
            kind: .known(.file), size: 2,
            transferred: 1, bytesPerSecond: 1, state: .known(state), createdAt: .distantPast)
    }

    private func event(_ type: ControlAPI.Event.Kind, _ resource: ControlAPI.Resource? = nil) -> ControlAPI.Event {
        ControlAPI.Event(epoch: "e", seq: 1, time: nil, type: .known(type), resource: resource)
    }

    /// A printed line must not begin after the progress line.
    @Test func aLineIsPrintedInPlaceOfTheDrawnOne() {
        var files = WatchedFiles(of: nil)
        let moving = self.resource("a", .transferring)
        let drawn = files.steps(after: self.event(.resourceProgress, moving), isReadable: true)
        #expect(drawn == [.draw(name: "a.iso", [moving])])

        let offered = self.event(.resourceOffered, self.resource("b", .offered))
        let besides = files.steps(after: offered, isReadable: true)
        #expect(besides == [.clear, .print(Render.event(offered)), .draw(name: "a.iso", [moving])])

        let gap = self.event(.gap)
        let missed = files.steps(after: gap, isReadable: true)
        #expect(missed == [.clear, .print(Render.event(gap))])

        let over = self.event(.resourceFinished, self.resource("a", .completed))
        let last = files.steps(after: over, isReadable: true)
        #expect(last == [.clear, .print(Render.event(over))])
    }

    @Test func whatIsNoFileIsNotShown() {
        var files = WatchedFiles(of: nil)
        let steps = files.steps(after: self.event(.peerFound), isReadable: true)
        #expect(steps.isEmpty)
    }
}
