extension ControlAPI {
    /// The name of the protocol in `Upgrade` with which a request passes an open descriptor (RFC 9110 section 7.8).
    public static let descriptorProtocol = "earshot-descriptor"

    /// A line of the daemon's answer on a connection that passed a descriptor. Exactly one member is set. The last line has `resources`,
    /// `stream` or `problem`, as the ordinary call would answer.
    public struct DescriptorLine: Codable, Hashable, Sendable {
        /// The transfer as it is now.
        public let resource: Resource?
        /// The result: one transfer for each recipient.
        public let resources: [Resource]?
        /// The result: the stream, which has ended.
        public let stream: Stream?
        /// The reason for the failure.
        public let problem: Problem?

        /// Creates a line from its parts.
        public init(resource: Resource? = nil, resources: [Resource]? = nil, stream: Stream? = nil, problem: Problem? = nil) {
            self.resource = resource
            self.resources = resources
            self.stream = stream
            self.problem = problem
        }
    }
}
