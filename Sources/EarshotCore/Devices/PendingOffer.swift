import EarshotWire

/// A device's offer that is not decided yet, beside its ``Invitation``.
struct PendingOffer: Sendable {
    enum Stage: Sendable, Hashable {
        /// A user is asked.
        case asking
        /// The offer is accepted, and the space for its files is being reserved.
        case reserving
        /// The offer is accepted, and its text is being written.
        case delivering
    }

    /// The call with which a user has accepted the offer. It is answered at the end of the stage, or after the trust is written.
    struct Acceptor: Sendable, Hashable {
        let call: CallID
        /// Whether the sender is trusted from then on.
        let isAlways: Bool
    }

    let call: CallID
    let sender: DeviceSender
    /// The key of its place among those of strangers: the sender's id, or one of its own if the sender has none.
    let place: PeerID
    let files: [OfferedUpload]
    /// The text, if the offer is a text message.
    let text: String?
    /// The port at which the sender listens.
    let port: UInt16?
    /// The bytes that it counts for `EarshotLimits.pendingDeviceOfferBytes`.
    let cost: Int
    private(set) var stage = Stage.asking
    /// `nil` if the settings have accepted the offer.
    private(set) var acceptor: Acceptor?

    mutating func accept(_ stage: Stage, for acceptor: Acceptor?) {
        self.stage = stage
        self.acceptor = acceptor
    }
}

/// A file of an offer, with its checked name and the id that it has here.
struct OfferedUpload: Sendable {
    let file: DeviceFile
    let path: OfferedPath
    let resource: ResourceID
}

extension DeviceFile {
    /// Whether the file is a text whose content is in the offer.
    var isText: Bool {
        let kind = self.contentType.lowercased()
        return kind == "text" || kind.hasPrefix("text/")
    }

    /// The bytes that the file counts while its offer is pending.
    var cost: Int {
        self.id.utf8.count + self.name.utf8.count + self.contentType.utf8.count + (self.preview?.utf8.count ?? 0)
            + EarshotLimits.deviceFileOverhead
    }

    /// The MIME type if it is one, else that of any bytes.
    var shownType: String { MessageFrame.isContentType(self.contentType) ? self.contentType : "application/octet-stream" }
}

extension DeviceSender {
    /// Whether a later request is from the same sender: from the same address, with the same certificate.
    func isSame(as other: DeviceSender) -> Bool {
        self.id == other.id && self.address.host == other.address.host && self.address.zone == other.address.zone
    }
}
