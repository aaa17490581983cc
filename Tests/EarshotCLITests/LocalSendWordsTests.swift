import ArgumentParser
import EarshotClient
import EarshotSafety
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The words about LocalSend devices and their offers.
@Suite struct LocalSendWordsTests {
    private static let date = Date(timeIntervalSince1970: 1_700_000_000)
    private static let device = PeerID(deviceCertificate: [1])

    private static func offer(
        _ files: [ControlAPI.OfferedFile], from peer: PeerID = Self.device, name: String = "phone",
        _ state: ControlAPI.Invitation.State = .pending
    ) -> ControlAPI.Invitation {
        .init(
            id: "3f1a6c1e0b2d", direction: .known(.incoming), peerID: peer, peerName: name, context: Base64Bytes([]), state: .known(state),
            createdAt: Self.date, expiresAt: Self.date, offer: files)
    }

    private static func file(_ name: String, _ size: UInt64 = 3_200_000) -> ControlAPI.OfferedFile {
        .init(name: name, size: size, contentType: "image/jpeg")
    }

    private static func lines(_ table: Table) -> [Substring] {
        table.render(width: nil, bold: false).split(separator: "\n", omittingEmptySubsequences: false)
    }

    @Test(arguments: [
        ([], "no files"), ([file("a")], "a (3.2 MB)"), ([file("a"), file("b", 12)], "2 files, 3.2 MB: a (3.2 MB), b (12 B)"),
        (
            ["a", "b", "c", "d", "e"].map { file($0, 1) },
            "5 files, 5 B: a (1 B), b (1 B), c (1 B), and 2 more"
        ), ([file("a", .max), file("b", .max)], "2 files, 18.4 EB: a (18.4 EB), b (18.4 EB)"),
    ]) func anOfferIsShort(_ files: [ControlAPI.OfferedFile], _ words: String) {
        #expect(Words.offer(files) == words)
    }

    @Test func anInvitationShowsItsOffer() {
        let lines = Self.lines(Render.invitations([Self.offer([Self.file("beach.jpg")])]))
        #expect(lines[1].contains("phone  \(Words.short(Self.device))  incoming"))
        #expect(lines[1].hasSuffix("-      beach.jpg (3.2 MB)"))
    }

    @Test(arguments: ["\u{1B}[2J", "\u{202E}", "\u{200B}", "\u{9B}1A", "\u{7F}", "\0", "\n", "\u{2028}"])
    func noNameReachesTheTerminalUnescaped(_ text: String) {
        let offer = Self.offer([Self.file(text)], name: text)
        let lines = Self.lines(Render.invitations([offer]))
        #expect(lines.count == 3 && !lines.contains { $0.contains(text) })
        let event = ControlAPI.Event(epoch: "e", seq: 1, time: Self.date, type: .known(.invitationReceived), invitation: offer)
        #expect(!Render.event(event).dropLast().contains(text))
    }

    @Test func aDeviceIsMarkedInTheListOfPeers() {
        func peer(_ kind: ControlAPI.Peer.Kind?) -> ControlAPI.Peer {
            .init(
                id: Self.device, name: "phone", presence: .known(.nearby), state: .known(.notConnected), trust: .known(.unknown),
                proven: true, addresses: [], discoveryInfo: [:], sources: ["localsend"], kind: kind.map { .known($0) },
                firstSeen: Self.date, lastSeen: Self.date)
        }
        let lines = Self.lines(Render.peers([peer(.localsend), peer(.earshot), peer(nil)]))
        #expect(lines[1].contains("nearby    localsend      unknown"))
        #expect(lines[2].contains("nearby    not_connected  unknown") && lines[3] == lines[2])
    }

    @Test(
        arguments: [
            (.init(enabled: false), nil), (.init(enabled: true, port: 53317, wantedPort: 53317), "TCP 53317"),
            (.init(enabled: true, port: 4711, wantedPort: 0), "TCP 4711"),
            (.init(enabled: true, port: 4711, wantedPort: 53317), "TCP 4711, because 53317 was in use"),
            (.init(enabled: true, error: "no port"), "does not run: no port"),
            (.init(enabled: true, port: 53317, wantedPort: 53317, error: "no multicast"), "TCP 53317: no multicast"),
        ] as [(ControlAPI.LocalSend, String?)]) func theStatusShowsThePort(_ state: ControlAPI.LocalSend, _ words: String?)
    {
        #expect(Words.localSend(state) == words)
    }

    @Test func anOfferThatIsOverIsAnOffer() {
        let peer = ControlAPI.Peer(
            id: Self.device, name: "phone", presence: .known(.nearby), state: .known(.notConnected), trust: .known(.unknown), proven: true,
            addresses: [], discoveryInfo: [:], sources: ["localsend"], firstSeen: Self.date, lastSeen: Self.date)
        let expired = PendingInvitations.none(of: peer, [Self.offer([Self.file("a")], .timedOut)])
        #expect(expired.message == "the offer from phone expired at \(Words.time(Self.date))")
        #expect(expired.hint == "send it again from the device")
        #expect(PendingInvitations.none(of: peer, [Self.offer([Self.file("a")], .cancelled)]).message == "phone withdrew the offer")
        // Another sender of the name proves nothing.
        let other = PendingInvitations.none(of: peer, [Self.offer([Self.file("a")], from: .unprovenDevice)])
        #expect(other.status == .denied && other.hint == "name the offer by its id: 3f1a6c1e-0b2")
    }

    @Test func anOfferWithoutAnIDIsCompletedByItsOwn() {
        let source = CompletionSource(
            peers: [], sessions: [],
            invitations: [Self.offer([Self.file("a")]), Self.offer([Self.file("a")], from: .unprovenDevice, name: "laptop")],
            resources: [])
        #expect(source.inviters.map(\.text) == ["phone", "3f1a6c1e-0b2"])
    }

    @Test func thePINIsAnOption() throws {
        let send = try #require(try EarshotCommand.parseAsRoot(["send", "phone", "hi", "--pin", "123456"]) as? SendCommand)
        #expect(send.pin == "123456" && send.text == ["hi"])
        let file = try #require(try EarshotCommand.parseAsRoot(["file", "send", "phone", "a", "--pin", "123456"]) as? FileSendCommand)
        #expect(file.pin == "123456" && file.paths == ["a"])
    }

    /// A device has no connection that stays: it can be reached while it is nearby.
    @Test(arguments: [(.nearby, nil), (.away, "phone is away; a waits for it")] as [(ControlAPI.Peer.Presence, String?)])
    func aDeviceNearbyIsNotWaitedFor(_ presence: ControlAPI.Peer.Presence, _ words: String?) {
        let peer = ControlAPI.Peer(
            id: Self.device, name: "phone", presence: .known(presence), state: .known(.notConnected), trust: .known(.trusted),
            proven: true, addresses: [], discoveryInfo: [:], sources: ["localsend"], kind: .known(.localsend), firstSeen: Self.date,
            lastSeen: Self.date)
        #expect(TransferFollower.waitingWords("a", for: peer) == words)
    }

    // MARK: Folders

    private static func resource(_ name: String, in folder: String?) -> ControlAPI.Resource {
        .init(
            id: "1111", direction: .known(.incoming), peerID: Self.device, peerName: "phone", name: name, kind: .known(.file), size: 2,
            transferred: 2, bytesPerSecond: 0, state: .known(.completed), createdAt: Self.date, inSpool: true, folder: folder)
    }

    @Test func aFileIsShownWithItsFolder() throws {
        let all = [Self.resource("a.jpg", in: "photos/beach")]
        #expect(Self.lines(Render.resources(all))[1].hasPrefix("photos/beach/a.jpg  2 B  "))
        #expect(try all.received("a.jpg").id == "1111" && all.received("photos/beach/a.jpg").id == "1111")
    }

    @Test(arguments: [("a", nil, false), ("a", "b/c", false), (".a", nil, true), ("a", ".ssh", true), ("a", "b/.c/d", true)])
    func aHiddenFolderHidesItsFiles(_ name: String, _ folder: String?, _ isHidden: Bool) {
        #expect(Self.resource(name, in: folder).isHidden == isHidden)
    }

    /// A folder is created below the user's directory, and nowhere else.
    @Test(arguments: [(nil, ""), ("photos", "/photos"), ("photos/beach", "/photos/beach")] as [(String?, String)])
    func aFolderIsCreated(_ folder: String?, _ path: String) async throws {
        try await Self.withDirectory { directory in
            try await ControlClient.with(socketPath: "/nonexistent") { client in
                let download = FileDownload(resource: Self.resource("a", in: folder), client: client)
                for _ in 0..<2 {
                    let place = try download.place(in: directory)
                    #expect(place.path == directory.path + path)
                    #expect(try download.shown(SafeName("a"), in: place, below: directory) == "\(directory.path)\(path)/a")
                }
            }
        }
    }

    @Test(arguments: ["", "/etc", "..", "a/../../b", "a//b", "a/", ".", "a/\u{1B}", String(repeating: "x", count: 256), "link/b"])
    func noFolderLeadsOut(_ folder: String) async throws {
        try await Self.withDirectory { directory in
            try FileManager.default.createSymbolicLink(atPath: "\(directory.path)/link", withDestinationPath: "/tmp")
            try await ControlClient.with(socketPath: "/nonexistent") { client in
                let download = FileDownload(resource: Self.resource("a", in: folder), client: client)
                #expect(throws: (any Error).self) { try download.place(in: directory) }
            }
            // At most the components before the wrong one.
            #expect(try FileManager.default.subpathsOfDirectory(atPath: directory.path).allSatisfy { ["a", "link"].contains($0) })
        }
    }

    private static func withDirectory(_ body: (SafeDirectory) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("folders-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(try SafeDirectory(path: path))
    }
}
