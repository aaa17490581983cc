import EarshotWire
import OrderedCollections

/// An accepted offer of a device, whose files are uploaded.
struct DeviceSession: Sendable {
    /// A file of the session, with its token.
    struct File: Sendable {
        enum State: Sendable, Hashable {
            /// An upload of the file may begin.
            case awaited
            /// An upload of the file is running, for this call.
            case moving(CallID)
            case received
            /// No further upload of the file is accepted.
            case failed
        }

        fileprivate(set) var upload: OfferedUpload
        let token: String
        fileprivate(set) var state = State.awaited
        /// The number of uploads so far.
        fileprivate(set) var attempts = 0
        /// Whether space is reserved for an upload that has not begun.
        fileprivate(set) var isReserved = true
    }

    let id: SessionID
    let sender: DeviceSender
    /// The id under which the sender's files are listed.
    let peer: PeerID
    let name: String
    /// The port at which the sender listens.
    let port: UInt16?
    /// The share of the quota within which the space was reserved.
    let share: QuotaShare
    private(set) var files: OrderedDictionary<String, File>
    /// When the session began, or its last byte came.
    private(set) var lastByte: MonotonicInstant

    init(id: SessionID, _ offer: PendingOffer, _ invitation: Invitation, share: QuotaShare, tokens: [String], at now: MonotonicInstant) {
        self.id = id
        self.sender = offer.sender
        self.peer = invitation.peerID
        self.name = invitation.peerName
        self.port = offer.port
        self.share = share
        self.lastByte = now
        self.files = OrderedDictionary(
            zip(offer.files, tokens).map { ($0.file.id, File(upload: $0, token: $1)) }, uniquingKeysWith: { first, _ in first })
    }

    var isOver: Bool {
        self.files.values.allSatisfy { file in
            switch file.state {
            case .awaited, .moving: false
            case .received, .failed: true
            }
        }
    }

    /// The number of files that are being received.
    var movingCount: Int { self.files.values.count { if case .moving = $0.state { true } else { false } } }

    /// The ids of the transfers that are being received, each with its call.
    var moving: [(resource: ResourceID, call: CallID)] {
        self.files.values.compactMap { if case .moving(let call) = $0.state { ($0.upload.resource, call) } else { nil } }
    }

    /// The transfers for which space is reserved and that have not begun.
    var reserved: [ResourceID] { self.files.values.filter(\.isReserved).map(\.upload.resource) }

    mutating func byteCame(at now: MonotonicInstant) { self.lastByte = now }

    /// Begins an upload of a file, as the transfer with this id.
    mutating func begin(_ file: String, for call: CallID, at now: MonotonicInstant) {
        self.files[file]?.state = .moving(call)
        self.files[file]?.attempts += 1
        self.files[file]?.isReserved = false
        self.lastByte = now
    }

    /// Ends the upload of a file. If it may be uploaded again, `next` is the id of that transfer.
    mutating func end(_ file: String, _ outcome: DeviceUploadEnd, next: ResourceID) {
        switch outcome {
        case .received: self.files[file]?.state = .received
        case .mismatched where (self.files[file]?.attempts ?? 0) < EarshotLimits.deviceUploadAttempts:
            self.files[file]?.state = .awaited
            guard let upload = self.files[file]?.upload else { return }
            self.files[file]?.upload = OfferedUpload(file: upload.file, path: upload.path, resource: next)
        case .mismatched, .failed: self.files[file]?.state = .failed
        }
    }
}

/// The end of one upload.
enum DeviceUploadEnd: Sendable, Hashable {
    case received
    /// The content does not have the offered digest. It may be uploaded again.
    case mismatched
    case failed
}
