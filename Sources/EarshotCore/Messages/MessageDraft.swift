public import EarshotWire
public import NIOCore

/// A message as its sender hands it over, for `Node.submit(_:)`.
public struct MessageDraft: Sendable, Hashable {
    /// Whom it is for.
    public var recipients: Message.Recipients
    /// 1 to 255 printable ASCII characters, such as `text/plain; charset=utf-8`.
    public var contentType: String
    /// At most 1 MiB.
    public var body: ByteBuffer
    /// How it travels.
    public var mode: Message.Mode
    /// The caller's own, for safe retries: the same message sent again under it is delivered once.
    public var id: MessageID?
    /// Whether it waits in the outbox on disk for absent peers.
    public var queue: Bool
    /// How long it is retried; 10 s unless given, and for a queued one the settings' `outbox_age`.
    public var timeout: Duration?
    /// Tells it apart from others of its id where its body is not kept in memory; needed of one that is queued, or that may be the same as
    /// one that is.
    package var fingerprint: [UInt8] = []

    /// A message from its parts.
    public init(
        to recipients: Message.Recipients, contentType: String, body: ByteBuffer, mode: Message.Mode = .reliable, id: MessageID? = nil,
        queue: Bool = false, timeout: Duration? = nil
    ) {
        self.recipients = recipients
        self.contentType = contentType
        self.body = body
        self.mode = mode
        self.id = id
        self.queue = queue
        self.timeout = timeout
    }

    /// What it costs while it waits, for the bounds on bytes.
    package var cost: Int { self.body.readableBytes + EarshotLimits.messageOverhead }
}
