import EarshotCore
import EarshotWire

/// A trace of a world's inputs and effects, one per line. The same schedule gives the same lines, byte for byte, in every process.
package struct Trace {
    private let write: (String) -> Void

    package init(_ write: @escaping (String) -> Void) { self.write = write }

    func note(_ line: @autoclosure () -> String) { self.write(line()) }

    func note(_ input: Input, of machine: Int, at now: Instant) {
        self.write("\(Int(now / .microseconds(1))) \(machine) <- \(Self.words(input))")
    }

    func note(_ effect: Effect, of machine: Int) { self.write("    \(machine) -> \(Self.words(effect))") }

    private static func words(_ input: Input) -> String {
        switch input {
        case .link(let link, .proven(let facts, let isOtherDead)):
            "link \(link.number) proven: \(facts.peer.id) \(facts.peer.displayName) \(facts.peer.transport)"
                + " \(facts.isInitiator ? "dialled" : "came in")\(isOtherDead ? ", the other one is dead" : "")"
        case .link(let link, .frame(let frame)): "link \(link.number): \(frame)"
        case .link(let link, .closed(let end)): "link \(link.number) closed: \(end)"
        case .discovery(.found(_, let seen)):
            "found \(seen.sighting.key.instanceName) \(seen.sighting.key.interfaceIndex)"
                + " \(seen.sighting.txt.map { String(decoding: $0.value, as: UTF8.self) }) \(seen.addresses)"
        case .settings(let settings): "settings \(settings.policy) \(settings.configuredPeers)"
        default: "\(input)"
        }
    }

    private static func words(_ effect: Effect) -> String {
        switch effect {
        case .send(let link, let frames): "send \(link.number): \(frames)"
        case .close(let link, let refusal): "close \(link.number)\(refusal.map { ": \($0.explanation)" } ?? "")"
        case .answer(let call, .peer(let peer)): "answer \(call.number): \(Self.words(peer))"
        case .answer(let call, let answer): "answer \(call.number): \(answer)"
        case .publish(.peerFound(let peer)): "found \(Self.words(peer))"
        case .publish(.peerChanged(let peer)): "changed \(Self.words(peer))"
        case .publish(.peerLost(let peer)): "lost \(Self.words(peer))"
        case .hold(let hold, let link, let bytes): "hold \(hold.number) \(link.number) \(bytes)"
        default: "\(effect)"
        }
    }

    /// Not Swift's own description: a dictionary has no order.
    private static func words(_ peer: Peer) -> String {
        "\(peer.id) \(peer.name) \(peer.presence.rawValue) \(peer.state.rawValue) \(peer.trust.rawValue)"
            + " \(peer.trustSource.map(\.rawValue) ?? "-") \(peer.trustEnd.map(\.text) ?? "-") \(peer.verified.map(\.rawValue) ?? "-")"
            + " \(peer.protection.map(\.rawValue) ?? "-") \(peer.addresses) \(peer.sources.map(\.rawValue))"
            + " \(peer.error.map { $0.code.rawValue } ?? "-") \(peer.nameConflict.map(\.description) ?? "-")"
    }
}
