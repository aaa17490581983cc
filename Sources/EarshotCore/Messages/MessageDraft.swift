public import EarshotWire
public import NIOCore

/// A message to send, as the caller passes it to `Node.submit(_:)`.
public struct MessageDraft: Sendable, Hashable {
    /// The recipients.
    public var recipients: Message.Recipients
    /// The content type: 1 to 255 printable ASCII characters, such as `text/plain; charset=utf-8`.
    public var contentType: String
    /// The body, at most 1 MiB.
    public var body: ByteBuffer
    /// The mode of delivery.
    public var mode: Message.Mode
    /// An id of the caller's choice, for safe retries: repeated calls with one id deliver the message once.
    public var id: MessageID?
    /// Whether the message waits in the outbox on disk for absent peers.
    public var queue: Bool
    /// The time for which delivery is retried. The default is 10 s, and for a queued message the setting `outbox_age`.
    public var timeout: Duration?
    /// The message to which this one replies. A peer of an earlier release gets the message without it.
    public var inReplyTo: MessageID?
    /// The PIN that a LocalSend device asks for.
    public var pin: String?
    /// The digest that distinguishes the message from others with its id if its body is not in memory. Required for a queued message, and
    /// for a message that may be the same as a queued one.
    package var fingerprint: [UInt8] = []

    /// Creates a draft from its parts.
    public init(
        to recipients: Message.Recipients, contentType: String, body: ByteBuffer, mode: Message.Mode = .reliable, id: MessageID? = nil,
        queue: Bool = false, timeout: Duration? = nil, inReplyTo: MessageID? = nil
    ) {
        self.recipients = recipients
        self.contentType = contentType
        self.body = body
        self.mode = mode
        self.id = id
        self.queue = queue
        self.timeout = timeout
        self.inReplyTo = inReplyTo
    }

    /// The bytes that the message counts for while it waits.
    package var cost: Int { self.body.readableBytes + EarshotLimits.messageOverhead }
}
