import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The received file that a name or id means, for `earshot file get` and `earshot file delete`.
@Suite struct ReceivedFilesTests {
    private static func resource(
        _ name: String, id: ResourceID = "0", _ state: ControlAPI.Resource.State = .completed,
        direction: ControlAPI.Direction = .incoming, inSpool: Bool? = true, path: String? = nil
    ) -> ControlAPI.Resource {
        ControlAPI.Resource(
            id: id, direction: .known(direction), peerID: "P", peerName: "alice", name: name, kind: .known(.file), size: 2, transferred: 2,
            bytesPerSecond: 0, state: .known(state), path: path, createdAt: .distantPast, inSpool: inSpool)
    }

    private func failure(_ text: String, in all: [ControlAPI.Resource]) -> CommandFailure? {
        do throws(CommandFailure) {
            _ = try all.received(text)
            return nil
        } catch {
            return error
        }
    }

    /// A file in the spool comes before all others of its name.
    @Test func whatWaitsComesFirst() throws {
        let all = [
            Self.resource("a", id: "1111", inSpool: false), Self.resource("a", id: "2222", inSpool: false, path: "/srv/a"),
            Self.resource("a", id: "3333"), Self.resource("a", id: "4444", .transferring, inSpool: nil),
            Self.resource("a", id: "5555", direction: .outgoing, inSpool: nil),
        ]
        #expect(try all.received("a").id == "3333")
        #expect(try all.received("2222").id == "2222")
    }

    /// If one of two published files has been moved away, the other one is meant.
    @Test func whatIsStillThereIsMeant() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("r-\(UInt32.random(in: 0 ... .max))").path
        #expect(FileManager.default.createFile(atPath: place, contents: Data()))
        defer { try? FileManager.default.removeItem(atPath: place) }
        let gone = Self.resource("a", id: "1111", inSpool: false, path: "\(place)-gone")
        let there = Self.resource("a", id: "2222", inSpool: false, path: place)
        for all in [[gone, there], [there, gone]] { #expect(try all.received("a").id == "2222") }
        #expect(self.failure("a", in: [there, there, gone])?.message == "a matches several files")
        #expect(try [gone].received("a").id == "1111")
    }

    /// Several files that cannot be fetched do not make a name ambiguous.
    @Test func severalThatCannotBeHadAreOne() {
        let fetched = Self.resource("a", id: "1111", inSpool: false)
        #expect(self.failure("a", in: [fetched, fetched])?.message == "a was already fetched, or was replaced by a later file")
        let moving = Self.resource("a", id: "2222", .transferring, inSpool: nil)
        #expect(self.failure("a", in: [moving, fetched])?.message == "a is still being transferred")
    }

    @Test func twinsAreToldApart() throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        let all = [Self.resource(composed, id: "1111"), Self.resource(decomposed, id: "2222")]
        #expect(try all.received(composed).id == "1111")
        #expect(try all.received(decomposed).id == "2222")
    }

    @Test func whatCannotBeHadIsNamed() {
        let cases: [(ControlAPI.Resource, EarshotCLI.ExitStatus, String)] = [
            (Self.resource("a", inSpool: false), .data, "a was already fetched, or was replaced by a later file"),
            (Self.resource("a", .failed, inSpool: nil), .data, "a did not arrive: it is failed"),
            (Self.resource("a", .transferring, inSpool: nil), .temporary, "a is still being transferred"),
            (Self.resource("a", direction: .outgoing, inSpool: nil), .data, "a was sent from this machine, not received"),
            (Self.resource("b"), .data, "no such file: a"),
        ]
        for (resource, status, message) in cases {
            let failure = self.failure("a", in: [resource])
            #expect(failure?.status == status && failure?.message == message)
        }
    }
}
