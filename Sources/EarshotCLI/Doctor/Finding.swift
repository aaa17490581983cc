/// The result of one check: a sign, a sentence, and the next step.
struct Finding: Codable, Hashable, Sendable {
    /// The result of the check.
    enum Sign: String, Codable, Hashable, Sendable, CaseIterable {
        case ok
        /// Works, but the user should know something.
        case warn
        /// Does not work.
        case fail
        /// Not checked; the message has the reason.
        case skip
    }

    let sign: Sign
    /// The name of the check, such as `firewall`.
    let check: String
    /// The sentence; text from other sources is escaped in it.
    let message: String
    /// The suggested next step.
    let next: String?
}

/// One check of `earshot doctor`: a function of the facts, so that tests need only facts.
struct Check: Sendable {
    /// A finding without the name of its check.
    struct Remark: Hashable, Sendable {
        let sign: Finding.Sign
        let message: String
        var next: String?

        static func ok(_ message: String) -> Remark { Remark(sign: .ok, message: message) }
        static func warn(_ message: String, next: String?) -> Remark { Remark(sign: .warn, message: message, next: next) }
        static func fail(_ message: String, next: String?) -> Remark { Remark(sign: .fail, message: message, next: next) }
        static func skip(_ message: String) -> Remark { Remark(sign: .skip, message: "not checked: " + message) }
    }

    let name: String
    private let examine: @Sendable (DoctorFacts) -> [Remark]

    init(_ name: String, _ examine: @escaping @Sendable (DoctorFacts) -> [Remark]) {
        self.name = name
        self.examine = examine
    }

    /// Returns the findings for the facts. Only the checks of a peer and of LocalSend may return none.
    func findings(_ facts: DoctorFacts) -> [Finding] {
        self.examine(facts).map { Finding(sign: $0.sign, check: self.name, message: $0.message, next: $0.next) }
    }

    /// All checks, from the command line outwards.
    static let all: [Check] =
        [
            .socket, .daemon, .settings, .discovery, .avahi, .bus, .names, .groups, .interfaces, .port, .reachability, .localSend,
            .firewall,
            .clock, .disk,
        ] + peer
}
