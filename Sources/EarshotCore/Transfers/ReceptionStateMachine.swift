/// The publication of an incoming resource after its last byte: it is verified, recorded as received and put in its place, and its content
/// leaves the spool. A value; ``NodeCore`` performs its actions.
struct ReceptionStateMachine: Sendable, Equatable {
    /// The node's next action once the content is verified and on disk.
    enum SettledAction: Sendable, Equatable {
        /// Write the row as a received one.
        case keep
        /// The transfer has ended meanwhile: remove the content from the spool.
        case removeContent
    }

    /// The node's next action after the row was written as a received one, or was refused by the disk.
    enum KeptAction: Sendable, Equatable {
        case wait
        /// Move the content to the directory of received files.
        case place
        case complete
        /// The transfer has ended meanwhile: write its row again as it is now.
        case undo
        case removeContent
    }

    /// The node's next action after the row of an ended transfer was written again.
    enum UndoneAction: Sendable, Equatable {
        case removeContent
        /// The disk refused the row and still has the content as a received one: the content stays.
        case stay
    }

    /// The node's next action after the row was written that says where the content is, or why it has no place.
    enum PlacedAction: Sendable, Equatable {
        case removeContent
        /// The resource is received, as its row says.
        case finish
    }

    /// The node's next action once the content has left the spool.
    enum RemovedAction: Sendable, Equatable {
        case wait
        /// The resource is received, as this row says.
        case finish(Resource)
        case fail(TransferFailure)
        /// The transfer had ended before.
        case rest
    }

    /// The reason for the removal of content from the spool.
    private enum Removal: Sendable, Equatable {
        /// The content is in its place, as this row says.
        case placed(Resource)
        /// The content cannot be put in its place.
        case misplaced(TransferFailure)
        /// The disk refused the row.
        case unkept(TransferFailure)
        /// The transfer has ended.
        case undone
    }

    private enum State: Sendable, Equatable {
        case idle
        /// The row on disk says that there is no content, while the spool has not confirmed the removal yet.
        case contentLeft
        /// The mover verifies the content and brings it to disk.
        case settling
        /// The row is being written as a received one.
        case keeping
        /// The transfer has ended after that, and its row is being written again.
        case undoing
        /// The content is being moved to its place; the row as it will be there.
        case placing(Resource)
        case removing(Removal)
    }

    private var state = State.idle

    /// Whether everything has arrived and is not published yet. The transfer finishes without the connection.
    var isActive: Bool {
        switch self.state {
        case .idle, .contentLeft: false
        case .settling, .keeping, .undoing, .placing, .removing: true
        }
    }

    /// Whether the mover verifies the content, after it has written the last bytes.
    var isSettling: Bool { self.state == .settling }

    /// Whether the disk is busy with the content before it has a place. If the transfer ends now, that has to be undone.
    var isWithDisk: Bool {
        switch self.state {
        case .settling, .keeping, .undoing, .removing(.unkept), .removing(.undone): true
        case .idle, .contentLeft, .placing, .removing(.placed), .removing(.misplaced): false
        }
    }

    /// Whether the content is being put in its place, or has just been. The transfer can no longer be cancelled.
    var isPlacing: Bool { self.isActive && !self.isWithDisk }

    /// The row that the resource will have in its place, while the content is being moved there.
    var placing: Resource? { if case .placing(let row) = self.state { row } else { nil } }

    var isRemoving: Bool { if case .removing = self.state { true } else { false } }

    /// Whether the spool has content that the row on disk no longer mentions.
    var isContentLeft: Bool { self.state == .contentLeft }

    /// Records that the sender has sent everything.
    mutating func settle() { self.state = .settling }

    /// Records that the mover has stopped. Content that it had not brought to disk is gone.
    mutating func moverStopped() { if self.state == .settling { self.state = .idle } }

    /// Records that the content is verified and on disk.
    mutating func settled(isOpen: Bool) -> SettledAction {
        self.state = isOpen ? .keeping : .removing(.undone)
        return isOpen ? .keep : .removeContent
    }

    /// Records that the row is written, or why the disk refused it.
    mutating func kept(_ row: Resource, _ failure: TransferFailure?, isOpen: Bool, hasPlace: Bool) -> KeptAction {
        guard self.state == .keeping else { return .wait }
        if let failure {
            self.state = .removing(isOpen ? .unkept(failure) : .undone)
            return .removeContent
        }
        guard isOpen else {
            self.state = .undoing
            return .undo
        }
        self.state = hasPlace ? .placing(row) : .idle
        return hasPlace ? .place : .complete
    }

    /// Records whether the row of an ended transfer is written. The content is removed after that, because a start must not look for
    /// content that is gone.
    mutating func undone(isWritten: Bool) -> UndoneAction {
        self.state = isWritten ? .removing(.undone) : .idle
        return isWritten ? .removeContent : .stay
    }

    /// Records that an earlier run has left the content in the spool: it is put in its place now.
    mutating func left(_ row: Resource) {
        var row = row
        row.error = nil
        row.errorMessage = nil
        self.state = .placing(row)
    }

    /// Records that the placement is over, as the row says.
    mutating func placed(_ row: Resource) -> PlacedAction {
        self.state = row.inSpool ? .idle : .removing(.placed(row))
        return row.inSpool ? .finish : .removeContent
    }

    /// Records that the content cannot be put in its place, and whether the disk took the row that says so.
    mutating func misplaced(_ failure: TransferFailure, isWritten: Bool) -> PlacedAction {
        self.state = isWritten ? .removing(.misplaced(failure)) : .idle
        return isWritten ? .removeContent : .finish
    }

    /// Records that the row says from now on that there is no content.
    mutating func dropped() { self.state = .contentLeft }

    /// Records that the spool has removed the dropped content.
    mutating func dropConfirmed() { if self.state == .contentLeft { self.state = .idle } }

    /// Records that the spool has removed the content, or why it could not.
    mutating func contentRemoved(_ error: EarshotError?) -> RemovedAction {
        let action: RemovedAction
        switch self.state {
        case .removing(.placed(let row)): action = .finish(row)
        case .removing(.misplaced(let failure)), .removing(.unkept(let failure)): action = .fail(failure)
        case .removing(.undone): action = .rest
        case .idle, .contentLeft: action = .wait
        case .settling, .keeping, .undoing, .placing: return .wait
        }
        self.state = error == nil ? .idle : .contentLeft
        return action
    }
}
