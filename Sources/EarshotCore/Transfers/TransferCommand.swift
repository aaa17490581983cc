package import EarshotWire

/// A caller's request about resources.
package enum ResourceRequest: Sendable, Hashable {
    /// Send these. The answer holds their rows; queued ones are on disk first.
    case send([ResourceDraft])
    /// Send a body that the caller supplies. The answer is the last row, at the end of the transfer.
    case sendBody(ResourceDraft)
    /// Answer an offer with a user's decision. The reply is its row. For an accepted offer it comes once there is room, except for a
    /// directory that waits for another one.
    case respond(ResourceID, Resource.Decision)
    /// Cancel an open transfer and answer with its last row. Remove the row and content of a finished one.
    case remove(ResourceID)
    /// Cancel the open transfers of a share and answer with the last rows of all. If none is open, remove them.
    case removeShare(ShareID)
    /// Remove the content of a received resource, and keep its row.
    case dropContent(ResourceID)
}

/// A resource to be sent.
package struct ResourceDraft: Sendable, Hashable {
    /// A fresh id.
    package let id: ResourceID
    package let conversation: Conversation
    /// The id that all transfers of one resource to a group share.
    package let shareID: ShareID?
    package let name: String
    package let kind: Resource.Kind
    package let size: UInt64
    package let path: String?
    package let source: StoredTransfer.Source
    /// A stamp that changes with the source's content; empty for a body.
    package let stamp: String
    package let digest: Resource.Digest
    package let isQueued: Bool
    /// The attributes that the caller gives for a body. A source on disk supplies its own when it is opened.
    package let attributes: FileAttributes?
    /// The most bytes per second; `nil` for no limit.
    package let limit: UInt64?
    /// The PIN that a LocalSend device asks for.
    package var pin: String?

    package init(
        id: ResourceID, to conversation: Conversation, shareID: ShareID? = nil, name: String, kind: Resource.Kind, size: UInt64,
        path: String? = nil, source: StoredTransfer.Source, stamp: String = "", digest: Resource.Digest = .xxh3, isQueued: Bool = false,
        attributes: FileAttributes? = nil, limit: UInt64? = nil, pin: String? = nil
    ) {
        self.pin = pin
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
        self.limit = limit
    }
}

/// A command to the mover of a transfer, which moves its bytes on this machine and runs one command after the other. It reports any
/// failure.
package enum TransferCommand: Sendable, Equatable {
    // Uploads
    /// Open the source in its present state; report it as opened.
    case open(Resource, StoredTransfer.Source)
    /// Report the digest of the given number of bytes from the start.
    case compare(UInt64)
    /// Send these bytes over the control connection, in order; report each piece.
    case send(from: UInt64, upTo: UInt64, on: LinkID)
    /// Send everything from this offset over the data connection.
    case sendOverData(from: UInt64)
    /// Report the digest of the whole.
    case digest(ResourceEnd.DigestAlgorithm)

    // Downloads
    /// Report whether there is room for an offer, before the user is asked.
    case checkRoom(Resource, QuotaShare)
    /// Report the content kept from an earlier connection. A file gets these attributes at the end.
    case resume(Resource, QuotaShare, FileAttributes? = nil)
    /// Reserve space, discard earlier content, and report that. From then on, received bytes are written and reported.
    case begin(Resource, QuotaShare)
    /// Write the bytes of the data connection, and report their progress.
    case receiveData
    /// Reserve space, and write the body of a device's upload, which this call brings. Report its end.
    case receiveBody(Resource, QuotaShare, FileAttributes?, CallID)
    /// Compare the whole with this digest, if there is one, and save it; report it as settled.
    case settle(ResourceDigest?)
    /// Move it into the directory of received files; report its place.
    case place(Resource)
    /// Remove its content from the spool; report that to the caller, if one waits.
    case removeContent(for: CallID?)

    // Both directions
    /// Move at most so many bytes per second from now on; `nil` for no limit.
    case pace(UInt64?)
    /// Report the progress.
    case look
    /// Stop, and report that. A download keeps its content or discards it.
    case stop(isKept: Bool)
    /// Discard the source or the unfinished content.
    case discard(StoredTransfer.Source)
}

/// The beginning of a resource, kept from an earlier connection.
package struct ResourceHeld: Sendable, Hashable {
    /// Bytes from the start; at least 1.
    package let count: UInt64
    /// The XXH3-128 digest of these bytes.
    package let digest: [UInt8]

    package init(count: UInt64, digest: [UInt8]) {
        self.count = count
        self.digest = digest
    }
}

/// A source as it was opened.
package struct OpenedSource: Sendable, Hashable {
    package let size: UInt64
    package let stamp: String
    /// The attributes, for a file.
    package let attributes: FileAttributes?

    package init(size: UInt64, stamp: String, attributes: FileAttributes? = nil) {
        self.size = size
        self.stamp = stamp
        self.attributes = attributes
    }
}

/// A report of the mover of a transfer.
package enum TransferReport: Sendable, Equatable {
    /// The source as it is now; `nil` for a body that is streamed.
    case opened(OpenedSource?)
    /// The digest; `nil` if the bytes cannot be read again.
    case compared([UInt8]?)
    /// The bytes handed to the control connection, counted from the start.
    case sent(to: UInt64)
    /// How far the data connection came: everything was handed to it, or it was lost.
    case dataSent(to: UInt64)
    case digested([UInt8])

    /// Why there is no room for an offer, with the text for its sender; `nil` if there is room.
    case room(TransferFailure?)
    case held(ResourceHeld?)
    case began
    /// The list of entries of a directory is here; its size in bytes.
    case listed(Int)
    case written(to: UInt64)
    case dataEnded(at: UInt64)
    /// All bytes of a device's upload are written.
    case bodyEnded
    /// The digest as `ALGORITHM:HEX`.
    case settled(String)
    /// The place of the content; `nil` if it is not to be moved anywhere. On failure, why it is still in the spool.
    case placed(Result<String?, EarshotError>)
    case contentRemoved(for: CallID?, EarshotError?)

    /// The progress.
    case moved(to: UInt64)
    case failed(TransferFailure)
    case stopped
    /// The caller that supplies the bytes has disconnected.
    case abandoned
}

/// Why a transfer cannot continue: an error for users here, and a refusal for the peer that reveals nothing about this machine's files.
package struct TransferFailure: Sendable, Equatable {
    package let error: EarshotError
    package let told: Refusal

    package init(_ error: EarshotError, told: Refusal) {
        self.error = error
        self.told = told
    }

    /// Creates a failure with the same text for both sides.
    init(_ error: EarshotError) {
        self.init(error, told: Refusal(error.code, error.message))
    }
}

/// A change of stored transfers that no caller waits for.
package enum TransferChange: Sendable, Hashable {
    /// The present row; `isNew` if the disk has none with this id.
    case put(Resource, isNew: Bool)
    /// The data that a transfer needs to resume.
    case putTransfer(StoredTransfer)
    /// The transfer does not resume.
    case removeTransfer(ResourceID)
    /// Remove a row, and remember its end if its sender may ask again.
    case remove(ResourceID, EndedTransfer?)
}

/// A resource loaded from an earlier run.
package struct LoadedTransfer: Sendable, Hashable {
    package let row: Resource
    package let stored: StoredTransfer?
    /// How much of an unfinished incoming one is here, in bytes.
    package let held: UInt64?
    /// The place of a directory that an earlier run had moved when it was killed, before it recorded that.
    package let place: String?

    package init(row: Resource, stored: StoredTransfer?, held: UInt64? = nil, place: String? = nil) {
        self.row = row
        self.stored = stored
        self.held = held
        self.place = place
    }
}
