/// What one check found: how it stands, in words, and the next thing to do.
struct Finding: Codable, Hashable, Sendable {
    /// How it stands.
    enum Sign: String, Codable, Hashable, Sendable, CaseIterable {
        case ok
        /// Works, with something that a person should know.
        case warn
        /// Does not work.
        case fail
        /// Not checked, and why.
        case skip
    }

    let sign: Sign
    /// Which check, such as `firewall`.
    let check: String
    /// What is right or wrong; what came from elsewhere in it is escaped.
    let message: String
    /// What to do about it.
    let next: String?
}

/// One thing that `earshot doctor` looks at: a function of the facts, so that a test needs nothing but facts.
struct Check: Sendable {
    /// What one check says, before the check's name is put to it.
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

    /// The findings in the facts. Only a peer's checks may have none.
    func findings(_ facts: DoctorFacts) -> [Finding] {
        self.examine(facts).map { Finding(sign: $0.sign, check: self.name, message: $0.message, next: $0.next) }
    }

    /// All of them, from the command line outwards.
    static let all: [Check] =
        [
            .socket, .daemon, .settings, .discovery, .avahi, .bus, .names, .groups, .interfaces, .port, .reachability, .firewall, .clock,
            .disk,
        ] + peer
}
