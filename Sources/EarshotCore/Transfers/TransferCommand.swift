package import EarshotWire

/// What is asked about resources.
package enum ResourceRequest: Sendable, Hashable {
    /// Send these. Answers their rows, once they are on disk where they are queued.
    case send([ResourceDraft])
    /// Send one whose bytes its caller brings. Answered with its last row when it is over.
    case sendBody(ResourceDraft)
    /// A person's answer to an offer. Answers its row: of an accepted one once there is room for it, but for a directory that waits for
    /// another one.
    case respond(ResourceID, Resource.Decision)
    /// Cancel an open one, and answer its last row; have a finished one's row and content go.
    case remove(ResourceID)
    /// Cancel those of a share that are open, and answer the last rows of all; where none is open, have them go.
    case removeShare(ShareID)
    /// Have the content of a received one go, and keep its row.
    case dropContent(ResourceID)
}

/// A resource that is to be sent.
package struct ResourceDraft: Sendable, Hashable {
    /// Nobody else has used it.
    package let id: ResourceID
    package let conversation: Conversation
    /// The same for all transfers of one thing to a group.
    package let shareID: ShareID?
    package let name: String
    package let kind: Resource.Kind
    package let size: UInt64
    package let path: String?
    package let source: StoredTransfer.Source
    /// What tells the source's content from another one; empty for a body.
    package let stamp: String
    package let digest: Resource.Digest
    package let isQueued: Bool
    /// What the caller says of a body; a source that is opened says it itself.
    package let attributes: FileAttributes?

    package init(
        id: ResourceID, to conversation: Conversation, shareID: ShareID? = nil, name: String, kind: Resource.Kind, size: UInt64,
        path: String? = nil, source: StoredTransfer.Source, stamp: String = "", digest: Resource.Digest = .xxh3, isQueued: Bool = false,
        attributes: FileAttributes? = nil
    ) {
        self.id = id
        self.conversation = conversation
        self.shareID = shareID
        self.name = name
        self.kind = kind
        self.size = size
        self.path = path
        self.source = source
        self.stamp = stamp
        self.digest = digest
        self.isQueued = isQueued
        self.attributes = attributes
    }
}

/// What the mover of a transfer is to do, which moves its bytes on this machine: one thing after the other. What fails is reported as
/// failed.
package enum TransferCommand: Sendable, Equatable {
    // Of an upload
    /// Open its source, as it is now; report it as opened.
    case open(Resource, StoredTransfer.Source)
    /// Report the digest of so many bytes from the start.
    case compare(UInt64)
    /// Send these over the control connection, in order; report each piece.
    case send(from: UInt64, upTo: UInt64, on: LinkID)
    /// Send everything from there on over the data connection.
    case sendOverData(from: UInt64)
    /// Report the digest of the whole.
    case digest(ResourceEnd.DigestAlgorithm)

    // Of a download
    /// Report whether there is room for an offer, before a person is bothered.
    case checkRoom(Resource, QuotaShare)
    /// Report what is here of it from before. A file gets these attributes in the end.
    case resume(Resource, QuotaShare, FileAttributes? = nil)
    /// Set its room aside, without what is here from before, and report that. From now on what comes of it is written and reported.
    case begin(Resource, QuotaShare)
    /// Write what comes over the data connection, and report how far that has come.
    case receiveData
    /// Compare the whole with this digest and save it; report it as saved.
    case settle(ResourceDigest)
    /// Put it into the directory of received files; report where it is.
    case place(Resource)
    /// Its content in the spool goes; report that to a caller, where one waits.
    case removeContent(for: CallID?)

    // Of both
    /// Come to a data connection with the peer, and report whether it stands.
    case openData(with: PeerID)
    case closeData
    /// Report how far it is.
    case look
    /// Do nothing further, and report that: of a download keep what is here, or not.
    case stop(isKept: Bool)
    /// What there is of a source or of an unfinished content is not needed any more.
    case discard(StoredTransfer.Source)
}

/// The beginning of a resource that is here from an earlier connection.
package struct ResourceHeld: Sendable, Hashable {
    /// Bytes from the start; at least 1.
    package let count: UInt64
    /// XXH3-128 of them.
    package let digest: [UInt8]

    package init(count: UInt64, digest: [UInt8]) {
        self.count = count
        self.digest = digest
    }
}

/// A source as it was found.
package struct OpenedSource: Sendable, Hashable {
    package let size: UInt64
    package let stamp: String
    /// Of a file.
    package let attributes: FileAttributes?

    package init(size: UInt64, stamp: String, attributes: FileAttributes? = nil) {
        self.size = size
        self.stamp = stamp
        self.attributes = attributes
    }
}

/// What the mover of a transfer reports.
package enum TransferReport: Sendable, Equatable {
    /// As it is now; `nil` for a body that passes by.
    case opened(OpenedSource?)
    /// `nil` where the bytes cannot be read again.
    case compared([UInt8]?)
    /// So much has been handed to the control connection, from the start.
    case sent(to: UInt64)
    /// Everything has been handed to the data connection, or that is lost: how far it came.
    case dataSent(to: UInt64)
    case digested([UInt8])

    /// Why there is no room for an offer, and what its sender is told.
    case room(TransferFailure?)
    case held(ResourceHeld?)
    case began
    /// The list of entries of a directory is here, and has so many bytes.
    case listed(Int)
    case written(to: UInt64)
    case dataEnded(at: UInt64)
    /// `ALGORITHM:HEX`.
    case settled(String)
    /// Where it is now; `nil` where it is not to be put anywhere, or why it is still here.
    case placed(Result<String?, EarshotError>)
    case contentRemoved(for: CallID?, EarshotError?)

    case dataOpened(Bool)
    /// How far it is.
    case moved(to: UInt64)
    case failed(TransferFailure)
    case stopped
    /// The caller that brings its bytes has gone.
    case abandoned
}

/// Why a transfer cannot go on: for persons here, and in words that say nothing of this machine's files for the other side.
package struct TransferFailure: Sendable, Equatable {
    package let error: EarshotError
    package let told: Refusal

    package init(_ error: EarshotError, told: Refusal) {
        self.error = error
        self.told = told
    }

    /// Both are told the same.
    init(_ error: EarshotError) {
        self.init(error, told: Refusal(error.code, error.message))
    }
}

/// A change of what is kept of transfers, where nobody waits for it.
package enum TransferChange: Sendable, Hashable {
    /// A row as it is now; `isNew` where there is none of this id on disk.
    case put(Resource, isNew: Bool)
    /// What a transfer needs to go on.
    case putTransfer(StoredTransfer)
    /// A transfer does not go on.
    case removeTransfer(ResourceID)
    /// A row goes, and its end is remembered where its sender may ask again.
    case remove(ResourceID, EndedTransfer?)
}

/// A resource that an earlier run has kept.
package struct LoadedTransfer: Sendable, Hashable {
    package let row: Resource
    package let stored: StoredTransfer?
    /// How much of an unfinished incoming one is here, in bytes.
    package let held: UInt64?
    /// Where a tree has been put, by a run that was killed before it could say so.
    package let place: String?

    package init(row: Resource, stored: StoredTransfer?, held: UInt64? = nil, place: String? = nil) {
        self.row = row
        self.stored = stored
        self.held = held
        self.place = place
    }
}
