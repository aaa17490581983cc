public import EarshotWire
import NIOCore

/// Pinging: whether a peer can be reached, and how long its answer takes.
extension Node {
    /// Pings a peer over its current connection, or over a new one. No persistent state changes.
    ///
    /// A failed step is not an error: the result names it.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `forbidden` for a blocked peer; `unavailable` when the daemon stops.
    public func ping(_ peer: any PeerReference) async throws(EarshotError) -> PeerPing {
        let target = try self.core.pingTarget(peer.description)
        var progress = PingProgress(target)
        if let standing = self.connection(to: target.id) {
            progress.stands(standing)
            return progress.result(await standing.ping(), over: .standing)
        }
        guard let addresses = await self.addresses(of: target, &progress) else { return progress.result }
        do throws(EarshotError) {
            try await self.transport.dial(addresses, expecting: target.id)
        } catch {
            progress.dialFailed(self.core.explained(error, name: target.name))
            return progress.result
        }
        // The core learns of the connection before its dialler does, and may have replaced it with another one.
        guard let new = self.connection(to: target.id) else {
            progress.failed(.answer, EarshotError(.notConnected, "the connection has ended again"))
            return progress.result
        }
        progress.stands(new)
        return progress.result(await new.ping(), over: .new)
    }

    /// Returns the addresses to dial, or `nil` if there are none.
    private func addresses(of target: PingTarget, _ progress: inout PingProgress) async -> [PeerAddress]? {
        var named: [PeerAddress] = []
        for peer in target.configured {
            do throws(EarshotError) {
                named += try await self.transport.lookup.addresses(of: peer)
            } catch {
                progress.failed(.name, error)
                return nil
            }
        }
        progress.done(.name)
        let links = LocalLinks.current()
        let seen = target.seen.filter { links.permit($0.address, fromLoopback: $0.isLoopback) }.map(\.address)
        var all: [PeerAddress] = []
        for address in seen + named + (target.lastGood.map { [$0] } ?? []) where !all.contains(address) { all.append(address) }
        let addresses = Array(all.prefix(EarshotLimits.addressesPerDial))
        guard !addresses.isEmpty else {
            let why = target.seen.isEmpty ? "it is not seen on the network" : "none of its addresses is on a network of this machine's"
            progress.failed(.address, EarshotError(.unavailable, why))
            return nil
        }
        progress.done(.address, addresses.map(\.description).joined(separator: ", "))
        return addresses
    }
}

/// The steps of one ping so far.
private struct PingProgress {
    private let target: PingTarget
    private var steps: [PeerPing.Step] = []

    init(_ target: PingTarget) { self.target = target }

    mutating func done(_ kind: PeerPing.Step.Kind, _ message: String? = nil) {
        self.steps.append(PeerPing.Step(kind, .ok, message ?? "\(self.target.name) is \(self.target.id)"))
    }

    mutating func failed(_ kind: PeerPing.Step.Kind, _ error: EarshotError) {
        self.steps.append(PeerPing.Step(kind, .failed, error.message, code: error.code))
    }

    /// Records a failed dial. All steps before the failed one have succeeded.
    mutating func dialFailed(_ error: EarshotError) {
        let failed = PeerPing.Step.Kind(ofFailedDial: error.code)
        let words: [(PeerPing.Step.Kind, String)] = [(.tcp, "connects"), (.tls, "agreed")]
        for (kind, message) in words.prefix(while: { $0.0 != failed }) { self.done(kind, message) }
        // No answer means a firewall or a machine that is off. A refusal comes from a machine that is running.
        self.failed(failed, error.isUnanswered ? EarshotError(.timedOut, error.message) : error)
    }

    /// Records an established connection. All of its steps have succeeded.
    mutating func stands(_ connection: Connection) {
        if self.steps.isEmpty { self.done(.name) }
        let address = connection.dialledAddress?.description ?? connection.channel.remoteAddress?.description ?? "unknown"
        if !self.steps.contains(where: { $0.kind == .address }) { self.done(.address, "connected at \(address)") }
        self.done(.tcp, "connected")
        self.done(.tls, connection.protection == .encrypted ? "encrypted" : "unprotected: both machines permit plaintext")
        self.done(.key, "proven")
    }

    func result(_ answer: Result<Int64, EarshotError>, over connection: PeerPing.Connection) -> PeerPing {
        var progress = self
        switch answer {
        case .failure(let error):
            progress.failed(.answer, error)
            return progress.result
        case .success(let nanoseconds):
            progress.done(.answer, "answers")
            return progress.result(connection, nanoseconds)
        }
    }

    var result: PeerPing { self.result(nil, nil) }

    private func result(_ connection: PeerPing.Connection?, _ nanoseconds: Int64?) -> PeerPing {
        let session =
            self.target.isMember
            ? PeerPing.Step(.session, .ok, "in a session")
            : PeerPing.Step(.session, .skipped, "no session")
        let missing = PeerPing.Step.Kind.allCases.filter { kind in kind != .session && !self.steps.contains { $0.kind == kind } }
        let steps = self.steps + missing.map { PeerPing.Step($0, .skipped, "not reached") } + [session]
        return PeerPing(
            peerID: self.target.id, peerName: self.target.name, connection: connection, roundTripNanoseconds: nanoseconds, steps: steps)
    }
}

extension EarshotError {
    /// Whether nothing at all came back from the address.
    fileprivate var isUnanswered: Bool {
        guard case .connectTimeout? = self.underlying as? ChannelError else { return false }
        return true
    }
}

extension Connection {
    /// The time from a ping to its pong, in nanoseconds.
    func ping() async -> Result<Int64, EarshotError> {
        let answer = self.channel.eventLoop.makePromise(of: Int64.self)
        self.askForSign(answer)
        do {
            return .success(try await answer.futureResult.get())
        } catch let error as EarshotError {
            return .failure(error)
        } catch {
            return .failure(EarshotError(.notConnected, "the connection ended before the peer answered"))
        }
    }
}
