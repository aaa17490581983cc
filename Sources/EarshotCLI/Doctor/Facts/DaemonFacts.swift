import EarshotClient
import EarshotSafety

extension DoctorFacts.Daemon {
    /// The longest time for the daemon's answer, which does not depend on other programs.
    static let patience: Duration = .seconds(5)

    /// Asks the daemon for its status, peers, groups and received files.
    static func gather(_ socket: DoctorFacts.Socket) async -> DoctorFacts.Daemon {
        guard socket.state == .answers else { return .notAsked }
        return await withTaskGroup(of: DoctorFacts.Daemon.self) { group in
            group.addTask { await Self.ask(socket.path) }
            group.addTask {
                try? await Task.sleep(for: Self.patience)
                return .failed("it accepted the connection but sent nothing")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .notAsked
        }
    }

    private static func ask(_ path: String) async -> DoctorFacts.Daemon {
        do {
            return try await ControlClient.with(socketPath: path) { client in
                let status = try await client.status().value
                let resources = try await client.resources().resources
                let received = resources.filter { $0.direction == .incoming && $0.inSpool != false && $0.state != .failed }
                // An older daemon has no groups.
                let groups = (try? await client.groups().groups) ?? []
                return .answers(
                    status, peers: try await client.peers().peers, groups: groups,
                    received: received.reduce(0) { sum, resource in
                        let (total, overflow) = sum.addingReportingOverflow(resource.transferred)
                        return overflow ? .max : total
                    })
            }
        } catch let error as ControlError {
            let failure = CommandFailure(error)
            return .failed(failure.message ?? "unexpected answer")
        } catch {
            return .failed("\(error)".escapedForDisplay)
        }
    }
}

extension DoctorFacts {
    /// Gathers all facts for the checks.
    static func gather(socket given: String?, peer: String? = nil) async -> DoctorFacts {
        let socket = Socket.gather(given: given)
        let daemon = await Daemon.gather(socket)
        let local = daemon.status?.local
        let portOfInterest = local.map { $0.port == $0.wantedPort ? 0 : $0.wantedPort } ?? Check.standardPort
        let localSend = daemon.status?.localSend
        let localSendPort = localSend?.port == localSend?.wantedPort ? 0 : localSend?.wantedPort ?? 0
        let sockets = portOfInterest == 0 && localSendPort == 0 ? nil : ListeningSockets.now()
        return DoctorFacts(
            caller: Account.caller(), socket: socket, daemon: daemon, version: EarshotVersion.current, settings: Settings.gather(),
            avahi: Avahi.gather(), bus: Bus.gather(), interfaces: Interface.gather(),
            portUser: sockets?.user(of: portOfInterest) ?? .free, localSendPortUser: sockets?.user(of: localSendPort) ?? .free,
            attempts: Self.attempts(daemon.status?.addresses ?? []), firewall: Firewall.gather(), clock: Clock.gather(),
            disk: Disk.gather(stateDirectory: local?.stateDirectory, choice: socket.choice),
            peer: await Peer.gather(peer, socket))
    }

    /// Connects to one of this machine's addresses per protocol, except loopback addresses.
    private static func attempts(_ addresses: [String]) -> [Attempt] {
        let parsed = addresses.compactMap(Self.parts)
        let chosen = [parsed.first { !$0.host.contains(":") }, parsed.first { $0.host.contains(":") }].compactMap { $0 }
        return chosen.map { Attempt(address: $0.text, result: SocketProbe.connect(host: $0.host, port: $0.port)) }
    }

    /// The parts of `10.0.0.7:47110` and `[2001:db8::7]:47110`; `nil` for loopback and link-local addresses.
    static func parts(_ address: String) -> (text: String, host: String, port: Int)? {
        guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]) else { return nil }
        let host = address[..<colon].filter { $0 != "[" && $0 != "]" }
        guard !host.hasPrefix("127."), host != "::1", !host.lowercased().hasPrefix("fe80:") else { return nil }
        return (address, host, port)
    }
}
