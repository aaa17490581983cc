import EarshotClient
import EarshotSafety

extension Check {
    /// The steps of reaching the named peer, one line per step; no lines without a name.
    static let peer = PingStepKind.allCases.map(Self.step)

    typealias PingStepKind = ControlAPI.PeerPing.Step.Kind

    private static func step(_ kind: PingStepKind) -> Check {
        Check("peer \(kind.rawValue)") { facts in
            switch facts.peer {
            case .notNamed: return []
            // The failure is reported once, not for each step.
            case .failed(let message, let next): return kind == .name ? [.fail(message, next: next)] : []
            case .answers(let ping):
                guard let step = ping.steps.first(where: { $0.step == .known(kind) }) else { return [] }
                let message = step.message.escapedOnceMore
                switch step.state {
                case .known(.ok):
                    guard kind == .answer, let time = ping.roundTripMilliseconds else { return [.ok(message)] }
                    return [.ok("\(message) in \(Words.milliseconds(time))")]
                case .known(.failed): return [.fail(message, next: Self.remedy(step, ping.peerName.escapedForDisplay))]
                case .known(.skipped), .unknown: return [.skip(message)]
                }
            }
        }
    }

    /// The advice for a failed step; the peer's name is escaped already.
    static func remedy(_ step: ControlAPI.PeerPing.Step, _ name: String) -> String? {
        switch step.step {
        case .known(.name): "check peers in [discovery], and the name server"
        case .known(.address): "check discovery on both machines: earshot doctor"
        case .known(.tcp) where step.code == .known(.timedOut):
            "check that \(name) is on, and that its firewall allows the port; on \(name): sudo earshot doctor"
        case .known(.tcp): "check that earshotd is running there; on \(name): earshot doctor"
        case .known(.tls): "compare encryption in [peer] on both machines"
        case .known(.key) where step.code == .known(.identityMismatch): "compare the ids: earshot status on \(name), and earshot peers here"
        case .known(.key): "compare service_type in [peer] and the versions on both machines"
        case .known(.answer): "try again: earshot ping \(name)"
        case .known(.session), .unknown: nil
        }
    }
}

extension DoctorFacts {
    /// The peer that the user named.
    enum Peer: Hashable, Sendable {
        case notNamed
        /// The daemon did not try: the reason, escaped, and the next step.
        case failed(String, next: String?)
        case answers(ControlAPI.PeerPing)

        /// Has the daemon contact the peer.
        static func gather(_ name: String?, _ socket: DoctorFacts.Socket) async -> Peer {
            guard let name else { return .notNamed }
            guard socket.state == .answers else { return .failed("nothing answers at the socket", next: nil) }
            do {
                return .answers(try await ControlClient.with(socketPath: socket.path) { client in try await client.ping(name).value })
            } catch let error as ControlError {
                let failure = CommandFailure(error, peer: name)
                return .failed(failure.message ?? "the daemon did not try", next: failure.hint)
            } catch {
                return .failed("\(error)".escapedForDisplay, next: nil)
            }
        }
    }
}
