package import EarshotWire

/// A LocalSend device's description of itself. Every field is untrusted.
package struct DeviceInfo: Sendable, Hashable {
    /// The name that the device shows: up to `EarshotLimits.deviceAliasLength` bytes, never empty.
    package var alias: String
    /// The version of the protocol, such as `2.1`.
    package var version: String
    package var model: String?
    package var kind: String?
    /// The SHA-256 of its certificate as it claims: 64 lower-case hexadecimal digits, or empty. Not proven.
    package var fingerprint: String
    /// The TCP port that it listens on; `nil` if the message had none.
    package var port: UInt16?
    /// Whether it speaks HTTPS. Plain HTTP is not supported.
    package var isEncrypted: Bool

    package init(
        alias: String, version: String, model: String? = nil, kind: String? = nil, fingerprint: String, port: UInt16? = nil,
        isEncrypted: Bool = true
    ) {
        self.alias = alias
        self.version = version
        self.model = model
        self.kind = kind
        self.fingerprint = fingerprint
        self.port = port
        self.isEncrypted = isEncrypted
    }
}

/// The sender of a request.
package struct DeviceSender: Sendable, Hashable {
    /// The id that its client certificate proves; `nil` if it showed none. Such a sender is nobody: it has no row.
    package let id: PeerID?
    /// The source address. Its port is the connection's.
    package let address: PeerAddress

    package init(id: PeerID?, address: PeerAddress) {
        self.id = id
        self.address = address
    }
}

/// A file as a device offers it, or as this machine offers it to a device.
package struct DeviceFile: Sendable, Hashable {
    /// The sender's id for the file, unique within the offer.
    package let id: String
    /// The name, which may be a relative path with `/`. Unchecked.
    package let name: String
    /// The size in bytes.
    package let size: UInt64
    /// The MIME type.
    package let contentType: String
    /// The SHA-256 of the content, if given.
    package let sha256: [UInt8]?
    /// The text itself, if the file is a text message.
    package let preview: String?
    /// The time of the last change, if given.
    package let modified: WallTime?

    package init(
        id: String, name: String, size: UInt64, contentType: String, sha256: [UInt8]? = nil, preview: String? = nil,
        modified: WallTime? = nil
    ) {
        self.id = id
        self.name = name
        self.size = size
        self.contentType = contentType
        self.sha256 = sha256
        self.preview = preview
        self.modified = modified
    }
}

/// An offer: the body of `prepare-upload`.
package struct DeviceOffer: Sendable, Hashable {
    package var info: DeviceInfo
    /// The files, ordered by name, at most `EarshotLimits.deviceOfferFiles`.
    package var files: [DeviceFile]

    package init(info: DeviceInfo, files: [DeviceFile]) {
        self.info = info
        self.files = files
    }
}

/// The answer to an offer that was accepted.
package enum DeviceOfferAnswer: Sendable, Hashable {
    /// 204: a text was taken, or nothing is wanted.
    case nothingToSend
    /// 200: the session, and the token of each file that is wanted, by the file's id in the offer.
    case upload(session: String, tokens: [DeviceToken])
}

/// The permission to upload one file.
package struct DeviceToken: Sendable, Hashable {
    package let file: String
    package let token: String

    package init(file: String, token: String) {
        self.file = file
        self.token = token
    }
}

/// An uploaded file's place in its offer.
package struct DeviceUpload: Sendable, Hashable {
    package let session: String
    package let file: String
    package let token: String

    package init(session: String, file: String, token: String) {
        self.session = session
        self.file = file
        self.token = token
    }
}

/// The reason for which this machine refuses a device's request, and the HTTP status that says so.
package enum DeviceRefusal: UInt16, Error, Sendable, Hashable, CaseIterable {
    case invalid = 400
    /// A PIN is required, or the one given is wrong.
    case pinRequired = 401
    /// Declined, blocked, or a wrong token or address.
    case declined = 403
    /// Another offer is pending.
    case busy = 409
    /// More bytes than declared, or more files than allowed.
    case tooLarge = 413
    /// The content does not have the offered digest.
    case digestMismatch = 422
    /// Too many wrong PINs.
    case tooManyPINs = 429
    case failed = 500
    case noSpace = 507
}
