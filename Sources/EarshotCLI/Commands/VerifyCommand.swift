import ArgumentParser
import EarshotClient
import EarshotSafety
import Glibc

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Verify a peer's key by comparing six digits, and trust it if they match.",
        discussion: """
            Run this command on both machines, within the timeout. Both show six digits. Read the digits to each other: they match unless an \
            attacker is in the middle.
            """)

    @Argument(help: .peer, completion: .peer(notYet: .blocked))
    var peer: String
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to wait for the other user, in seconds or with a unit, such as 60 or 5min; default: 2min.", valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if let timeout = self.timeout, timeout.value <= 0 || timeout.duration > WireLimits.comparisonTime {
            throw ValidationError("--timeout is more than 0 and at most an hour")
        }
    }

    mutating func run() async throws {
        let (options, name, timeout) = (self.options, self.peer, self.timeout?.duration)
        try await options.withClient { client in
            await NameWarning(client: client).tell(of: name)
            let reply = try await Self.compare(client, name, timeout)
            if options.json { try Standard.write(json: reply.json) }
            try await Self.judge(client, reply.value, isSilent: options.json)
        }
    }

    /// Requests the comparison and waits for the digits. A signal ends the comparison.
    private static func compare(
        _ client: ControlClient, _ name: String, _ timeout: Duration?
    ) async throws -> ControlReply<ControlAPI.Verification> {
        // Subscribes first, so that early digits are not missed.
        let events = try await client.events()
        let pending = PendingReply<ControlReply<ControlAPI.Verification>>()
        return try await Interrupts.takingBack {
            guard let started = await pending.answer() else { return }
            _ = try? await client.endVerification(of: started.value.peerID, mismatch: false)
        } _: {
            let started = try await pending.ask { try await client.verify(name, timeout: timeout) }
            guard started.value.state == .waiting else { return started }
            let id = started.value.peerID
            Standard.note("waiting for the user of \(started.value.peerName.escapedForDisplay) to run earshot verify too")
            // The outcome as it was reported: the daemon may start something else a moment later.
            var outcome: ControlReply<ControlAPI.Verification>?
            func look() async throws -> Bool {
                let now = try await client.verification(of: id)
                guard now.value.state != .waiting else { return true }
                outcome = now
                return false
            }
            func goesOn(after event: ControlReply<ControlAPI.Event>) async throws -> Bool {
                switch event.type {
                case .known(.verificationChanged):
                    guard event.peerID == id else { return true }
                    guard let told = event.verification else { return try await look() }
                    switch told.state {
                    case .known(.waiting), .known(.requested): return true
                    case .known(.ready): break
                    case .known, .unknown:
                        // The end of an earlier comparison, reported before this one began.
                        guard try await client.verification(of: id).state != .waiting else { return true }
                    }
                    outcome = ControlReply(value: told, json: try ControlJSON.encode(told))
                    return false
                // The outcome may be among the missed events, or unreadable.
                case .known(.gap): return try await look()
                default: return event.unreadable.isEmpty ? true : try await look()
                }
            }
            for try await event in events {
                guard try await goesOn(after: event) else { break }
            }
            guard let outcome else { return try await client.verification(of: id) }
            return outcome
        }
    }

    private static func judge(_ client: ControlClient, _ verification: ControlAPI.Verification, isSilent: Bool) async throws {
        let name = verification.peerName.escapedForDisplay
        guard verification.state == .ready, let digits = verification.digits else {
            let failure = verification.error
            throw CommandFailure(
                code: failure?.code ?? "cancelled",
                message: failure?.message ?? "the comparison with \(verification.peerName) was cancelled",
                peer: verification.peerName)
        }
        guard !isSilent else { return }
        // The name is suggested only if it means this peer, since another known peer may have the same name.
        let isMeant = try? await client.peer(verification.peerName).id == verification.peerID
        let next = isMeant == true ? name : Words.short(verification.peerID)
        try Standard.write(digits.escapedForDisplay + "\n")
        guard Terminal.canAsk else {
            Standard.note("if \(name) shows the same digits: earshot trust \(next)")
            return
        }
        switch Terminal.ask("do the digits match? [y/N] ") {
        case "y", "yes":
            let peer = try await client.setTrust(.trusted, of: verification.peerID).value
            Standard.note("\(peer.name.escapedForDisplay) is verified and trusted")
        case "n", "no":
            try await client.endVerification(of: verification.peerID, mismatch: true)
            throw CommandFailure(
                .denied,
                "the digits differ: this is not \(name)'s key, or an attacker is in the middle; "
                    + "the mismatch is recorded, and the peer is not trusted",
                hint: "check who is on the network, then try again: earshot verify \(next)")
        default:
            throw CommandFailure(.denied, "no decision was made about \(name)", hint: "if the digits matched: earshot trust \(next)")
        }
    }
}
