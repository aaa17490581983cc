import EarshotWire
import Testing

@testable import EarshotCore

/// The course of a resource on one connection, with one transition per line.
@Suite struct TransferMachineTests {
    private static let large = EarshotLimits.dataThreshold

    // MARK: Sending

    private func offered(isChanged: Bool = false) -> UploadStateMachine {
        var upload = UploadStateMachine()
        upload.opened(isChanged: isChanged)
        return upload
    }

    @Test func sentOverTheControlConnection() {
        var upload = self.offered()
        #expect(upload.awaitsAcceptance)
        #expect(upload.accepted(from: 0, upTo: 10, of: 30) == .send(from: 0, upTo: 10))
        #expect(!upload.awaitsAcceptance)
        #expect(upload.accepted(from: 5, upTo: 30, of: 30) == .send(from: 10, upTo: 30))
        #expect(upload.sent(to: 7, of: 30) == .wait)
        #expect(upload.sent(to: 10, of: 30) == .wait)
        #expect(upload.sent(to: 30, of: 30) == .digest)
        #expect(upload.done() == .wait, "not before the digest is said")
        #expect(upload.digested() && !upload.digested())
        #expect(upload.done() == .complete)
    }

    /// A receiver may repeat acceptances without limit: at most two orders wait, and the next one covers all acceptances since.
    @Test func acceptancesThatRepeat() {
        var upload = self.offered()
        var actions = [upload.accepted(from: 0, upTo: 1, of: 1_000)]
        for limit in 2...900 as ClosedRange<UInt64> { actions.append(upload.accepted(from: 0, upTo: limit, of: 1_000)) }
        #expect(actions.filter { $0 != .wait } == [.send(from: 0, upTo: 1), .send(from: 1, upTo: 2)])
        #expect(upload.sent(to: 1, of: 1_000) == .send(from: 2, upTo: 900))
        // A repeated acceptance changes nothing, and a smaller one withdraws nothing.
        #expect(upload.accepted(from: 1, upTo: 3, of: 1_000) == .wait)
        #expect(upload.sent(to: 2, of: 1_000) == .wait)
    }

    @Test func nothingIsThere() {
        var upload = self.offered()
        #expect(upload.accepted(from: 0, upTo: 0, of: 0) == .digest)
    }

    @Test func heldBytesAreComparedBeforeSending() {
        var upload = self.offered()
        #expect(upload.held(20, [1]) == .compare(20))
        #expect(upload.held(20, [1]) == .wait && upload.accepted(from: 0, upTo: 9, of: 30) == .wait)
        #expect(upload.compared([1]) == .goOn(from: 20))
        #expect(upload.done() == .wait)
        #expect(upload.accepted(from: 20, upTo: 30, of: 30) == .send(from: 20, upTo: 30))
        for own in [[2], nil] as [[UInt8]?] {
            var other = self.offered()
            #expect(other.held(20, [1]) == .compare(20))
            #expect(other.compared(own) == .goOn(from: 0))
        }
        var changed = self.offered(isChanged: true)
        #expect(changed.held(20, [1]) == .goOn(from: 0), "another source is not worth reading")
    }

    @Test func sentOverDataConnections() {
        var upload = self.offered()
        #expect(upload.accepted(from: 0, upTo: 0, of: 30) == .openData)
        #expect(upload.dataOpened(true) == .sendOverData(from: 0))
        // The data connection is lost: the receiver reports its progress, and requests another one, then none.
        #expect(upload.accepted(from: 12, upTo: 12, of: 30) == .openData)
        #expect(upload.dataOpened(false) == .wait)
        #expect(upload.accepted(from: 12, upTo: 20, of: 30) == .send(from: 12, upTo: 20))
        #expect(upload.dataOpened(true) == .wait, "that comes too late")
        var whole = self.offered()
        #expect(whole.accepted(from: 0, upTo: 0, of: 30) == .openData)
        #expect(whole.dataOpened(true) == .sendOverData(from: 0))
        #expect(whole.accepted(from: 30, upTo: 30, of: 30) == .digest, "the receiver has everything")
    }

    @Test func itWasThereAlready() {
        var upload = self.offered()
        #expect(upload.done() == .complete)
        var early = UploadStateMachine()
        #expect(early.done() == .wait && early.held(1, []) == .wait && early.accepted(from: 0, upTo: 1, of: 1) == .wait)
    }

    // MARK: Receiving

    private func begun(_ size: UInt64, window: UInt64 = 10) -> (DownloadStateMachine, DownloadStateMachine.Action) {
        var download = DownloadStateMachine()
        #expect(download.take(hasTurn: true) == .resume)
        #expect(download.held(nil) == .begin)
        let action = download.began(size: size, window: window)
        return (download, action)
    }

    @Test func receivedOverTheControlConnection() {
        var (download, first) = self.begun(25)
        #expect(first == .accept(from: 0, upTo: 10))
        #expect(download.written(to: 4, size: 25, window: 10) == .wait)
        #expect(download.written(to: 5, size: 25, window: 10) == .widen(from: 5, upTo: 15))
        #expect(download.written(to: 20, size: 25, window: 10) == .widen(from: 20, upTo: 25))
        #expect(download.written(to: 25, size: 25, window: 10) == .wait)
        let digest = ResourceDigest(.xxh3, [1, 0x2F])
        #expect(digest.text == "xxh3:012f")
        #expect(download.ended(digest) == .settle(digest))
        #expect(download.ended(digest) == .wait && download.written(to: 25, size: 25, window: 10) == .wait)
    }

    /// A large rest is worth a data connection. After several failed ones the transfer continues without.
    @Test func receivedOverDataConnections() {
        #expect(self.begun(Self.large - 1).1 == .accept(from: 0, upTo: 10))
        var (download, first) = self.begun(2 * Self.large)
        #expect(first == .accept(from: 0, upTo: 0))
        #expect(download.dataOpened(true, size: 2 * Self.large, window: 10) == .receiveData)
        #expect(download.dataEnded(at: 1, size: 2 * Self.large, window: 10) == .accept(from: 1, upTo: 1), "something has come")
        for failure in 1...EarshotLimits.dataFailures {
            #expect(download.dataOpened(true, size: 2 * Self.large, window: 10) == .receiveData)
            let isLast = failure == EarshotLimits.dataFailures
            let action = download.dataEnded(at: 1, size: 2 * Self.large, window: 10)
            #expect(action == .accept(from: 1, upTo: isLast ? 11 : 1))
        }
        var (without, _) = self.begun(2 * Self.large)
        #expect(without.dataOpened(false, size: 2 * Self.large, window: 10) == .accept(from: 0, upTo: 10))
        var (whole, _) = self.begun(Self.large)
        #expect(whole.dataOpened(true, size: Self.large, window: 10) == .receiveData)
        #expect(whole.dataEnded(at: Self.large, size: Self.large, window: 10) == .accept(from: Self.large, upTo: Self.large))
        let digest = ResourceDigest(.sha256, [])
        #expect(whole.ended(digest) == .settle(digest))
    }

    @Test func aDownloadContinuesFromItsHeldBytes() {
        let held = ResourceHeld(count: 7, digest: [3])
        for (offset, expected) in [(7, DownloadStateMachine.Action.accept(from: 7, upTo: 17)), (0, .begin), (26, .wait)] {
            var download = DownloadStateMachine()
            #expect(download.take(hasTurn: true) == .resume)
            #expect(download.goes(on: 0, size: 25, window: 10) == .wait, "nobody has asked")
            #expect(download.held(held) == .tell(held))
            #expect(download.goes(on: UInt64(offset), size: 25, window: 10) == expected)
        }
    }

    @Test func aDirectoryWaitsForItsTurn() {
        var download = DownloadStateMachine()
        #expect(download.take(hasTurn: false) == .wait)
        #expect(download.held(nil) == .wait && download.began(size: 1, window: 1) == .wait)
        #expect(download.turn() == .resume)
        #expect(download.turn() == .wait)
    }
}
