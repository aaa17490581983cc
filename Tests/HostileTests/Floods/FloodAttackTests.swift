import Crypto
import EarshotWire
import Foundation
import Testing

/// Floods that were found by attacks. In each, the daemon must serve its other peers as promised.
extension HostileTests.Floods {
    /// Strangers over TLS, which is the packaged daemon's usual transport. Each frame acknowledges the reading of 1,024 messages.
    @Test("floods: receipts from one stranger over TLS") func receiptsOverTLS() throws {
        let field = try FloodField(.stranger, 0)
        let tunnel = try TLSTunnel(to: field.daemon.port)
        let noted = try FloodTemplate(repeating: { step in
            [
                .messageReceipts(
                    (0..<UInt64(WireLimits.receiptsPerFrame)).map { MessageReceipt(id: FloodWords.id(step, $0), outcome: .noted) })
            ]
        })
        let flood = Flood(.stranger, through: tunnel, noted)
        try self.hold(field, flood, noted, for: .milliseconds(100 * Scale.of(100)), "receipts of one stranger over TLS")
    }

    /// Strangers that repeatedly create and withdraw an invitation.
    @Test("floods: invitations and withdrawals by 12 strangers") func invitationsAndWithdrawals() throws {
        let field = try FloodField(.stranger, 0)
        let template = try FloodField.template(.alone(.inviteWithdraw))
        let flood = Flood(12, .stranger, port: field.daemon.port, template)
        try self.hold(field, flood, template, for: .milliseconds(50 * Scale.of(100)), "invitations and withdrawals of 12 strangers")
    }

    /// Many transfers, so that any linear search among them would show.
    @Test("floods: 20,000 offers and cancels by one member") func offersAndCancels() throws {
        let field = try FloodField(.member, 0)
        let template = try FloodField.template(.alone(.resourceCancel))
        let flood = Flood(1, .member, port: field.daemon.port, template)
        let offers = Scale.of(20_000)
        try self.hold(field, flood, template, for: .seconds(30), "\(offers) offers and cancels of one member") {
            flood.sent >= offers * (template.bytes.count / Int(template.runs))
        }
    }

    /// Runs one flood against a field, and checks all of the daemon's bounds.
    private func hold(
        _ field: FloodField, _ flood: Flood, _ template: FloodTemplate, for time: Duration, _ name: String,
        until isEnough: () -> Bool = { false }
    ) throws {
        var result = try field.watch.result(of: name) {
            try flood.run(template, for: time) { field.watch.isBeyondAll || isEnough() }
        }
        (result.sent, result.connections) = (flood.sent, flood.connections)
        print("measured: \(result.line)")
        flood.stop()
        try flood.leave()
        let faults = result.faults(withTimes: true) + (try field.end())
        #expect(faults.isEmpty, "\(faults.joined(separator: ", "))")
    }
}

/// Invariants for frames without a session.
extension HostileTests.Floods {
    @Test("floods: strangers leave the store as it was, byte for byte") func theStoreStands() throws {
        let daemon = try VictimDaemon()
        let live = try self.friend(of: daemon)
        let store = daemon.store
        for stand in [FloodStand.unproven, .stranger] {
            let flood = Flood(4, stand, port: daemon.port, try FloodField.template(.alone(.ping)))
            for kind in FloodKind.eachAlone + [.mixed(seed: 7), .random(seed: 7)] {
                try flood.run(try FloodField.template(kind), for: .milliseconds(2 * Scale.of(100)))
                flood.stop(abruptly: true)
                _ = try live.ping()
                #expect(daemon.store == store, "\(kind) by \(stand)")
            }
        }
        #expect(daemon.isAlive)
    }

    /// Sends every frame that needs a session from a peer whose session has ended: nothing is stored, and no event is published.
    @Test("floods: frames of a session that has ended do nothing") func framesWithoutASession() throws {
        let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n")
        let live = try self.friend(of: daemon)
        let flood = Flood(4, .former, port: daemon.port, try FloodField.template(.unknown))
        try flood.run(try FloodField.template(.unknown), for: .milliseconds(2 * Scale.of(100)))
        flood.stop()
        _ = try live.ping()
        _ = try live.message()
        let store = daemon.store
        let events = try PlainSocket(path: daemon.socket)
        events.send(Array("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        for type in FrameType.allCases where type.needsSession {
            try flood.run(try FloodField.template(.alone(type)), for: .milliseconds(2 * Scale.of(100)))
            flood.stop(abruptly: true)
            _ = try live.ping()
            #expect(daemon.store == store, "\(type)")
        }
        #expect(daemon.isAlive)
        var heard: [UInt8] = []
        while let piece = events.receive(within: 500), !piece.isEmpty { heard += piece }
        let lines = String(decoding: heard, as: UTF8.self).split(whereSeparator: \.isNewline).filter { $0.hasPrefix("{") }
        #expect(!lines.isEmpty, "that they come and go is told")
        #expect(lines.filter { !$0.contains(#""type":"peer."#) } == [])
    }

    /// Returns a session with a long time limit, after storing some messages.
    private func friend(of daemon: VictimDaemon) throws -> LiveSession {
        let live = try LiveSession(port: daemon.port, key: try LiveSession.makeFriend(of: daemon), patience: 60_000)
        for _ in 0..<20 { _ = try live.message() }
        return live
    }
}
