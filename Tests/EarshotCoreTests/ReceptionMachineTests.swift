import EarshotWire
import Testing

@testable import EarshotCore

/// The publication of a received resource, with one transition per line.
@Suite struct ReceptionMachineTests {
    private static let failure = TransferFailure(EarshotError(.storage, "the disk is full"))

    private func row(inSpool: Bool = true) -> Resource {
        Resource(
            id: ResourceID(high: 1, low: 1), direction: .incoming, peerID: peerID(2), peerName: "bob", name: "x", kind: .file,
            size: 9, state: .completed, error: .unavailable, errorMessage: "it was not put in place before the stop",
            created: WallTime(milliseconds: 0), inSpool: inSpool)
    }

    private func settled(isOpen: Bool = true) -> ReceptionStateMachine {
        var reception = ReceptionStateMachine()
        reception.settle()
        #expect(reception.isActive && reception.isWithDisk && !reception.isPlacing)
        #expect(reception.settled(isOpen: isOpen) == (isOpen ? .keep : .removeContent))
        return reception
    }

    private func placing() -> ReceptionStateMachine {
        var reception = self.settled()
        #expect(reception.kept(self.row(), nil, isOpen: true, hasPlace: true) == .place)
        #expect(reception.isPlacing && !reception.isWithDisk && reception.placing == self.row())
        return reception
    }

    @Test func keptInTheSpool() {
        var reception = self.settled()
        #expect(reception.isActive && reception.isWithDisk)
        #expect(reception.kept(self.row(), nil, isOpen: true, hasPlace: false) == .complete)
        #expect(!reception.isActive)
        #expect(reception.kept(self.row(), nil, isOpen: true, hasPlace: false) == .wait, "it is written once")
    }

    @Test func putInItsPlace() {
        var reception = self.placing()
        #expect(reception.placed(self.row(inSpool: false)) == .removeContent)
        #expect(reception.isPlacing && reception.isRemoving && reception.placing == nil)
        #expect(reception.contentRemoved(nil) == .finish(self.row(inSpool: false)))
        #expect(!reception.isActive && !reception.isContentLeft)
        #expect(reception.contentRemoved(nil) == .wait)
    }

    @Test func itStaysInTheSpool() {
        var reception = self.placing()
        #expect(reception.placed(self.row()) == .finish)
        #expect(!reception.isActive)
    }

    @Test func itsPlaceIsTaken() {
        var reception = self.placing()
        #expect(reception.misplaced(Self.failure, isWritten: true) == .removeContent)
        #expect(reception.isPlacing && reception.isRemoving)
        #expect(reception.contentRemoved(nil) == .fail(Self.failure))
        #expect(!reception.isActive)
        var unwritten = self.placing()
        #expect(unwritten.misplaced(Self.failure, isWritten: false) == .finish)
        #expect(!unwritten.isActive)
    }

    @Test func theDiskRefusesTheRow() {
        var reception = self.settled()
        #expect(reception.kept(self.row(), Self.failure, isOpen: true, hasPlace: true) == .removeContent)
        #expect(reception.isWithDisk && reception.isRemoving && !reception.isPlacing)
        #expect(reception.contentRemoved(nil) == .fail(Self.failure))
        var ended = self.settled()
        #expect(ended.kept(self.row(), Self.failure, isOpen: false, hasPlace: true) == .removeContent)
        #expect(ended.contentRemoved(nil) == .rest)
    }

    @Test func endedWhileItSettles() {
        var reception = self.settled(isOpen: false)
        #expect(reception.isWithDisk && reception.isRemoving)
        #expect(reception.contentRemoved(nil) == .rest)
        #expect(!reception.isActive)
        var stopped = ReceptionStateMachine()
        stopped.settle()
        stopped.moverStopped()
        #expect(!stopped.isActive)
    }

    @Test func endedWhileItIsWritten() {
        var reception = self.settled()
        reception.moverStopped()
        #expect(reception.kept(self.row(), nil, isOpen: false, hasPlace: true) == .undo)
        #expect(reception.isWithDisk && !reception.isRemoving)
        #expect(reception.undone(isWritten: true) == .removeContent)
        #expect(reception.contentRemoved(nil) == .rest)
        var refused = self.settled()
        #expect(refused.kept(self.row(), nil, isOpen: false, hasPlace: false) == .undo)
        #expect(refused.undone(isWritten: false) == .stay)
        #expect(!refused.isActive && !refused.isContentLeft, "the disk has it as a received one")
    }

    /// Content that the spool could not remove stays until it is dropped.
    @Test func contentIsLeft() {
        var reception = self.settled(isOpen: false)
        #expect(reception.contentRemoved(Self.failure.error) == .rest)
        #expect(reception.isContentLeft && !reception.isActive)
        reception.dropConfirmed()
        #expect(!reception.isContentLeft)
        reception.dropped()
        #expect(reception.isContentLeft)
        #expect(reception.contentRemoved(nil) == .wait)
        #expect(!reception.isContentLeft)
    }

    @Test func anEarlierRunHasLeftIt() {
        var reception = ReceptionStateMachine()
        reception.left(self.row())
        #expect(reception.isPlacing && reception.placing?.error == nil && reception.placing?.errorMessage == nil)
        #expect(reception.placed(self.row(inSpool: false)) == .removeContent)
        // A report about other content changes nothing.
        var other = self.settled()
        #expect(other.contentRemoved(nil) == .wait)
        other.dropConfirmed()
        #expect(other.isWithDisk && !other.isRemoving)
    }
}
