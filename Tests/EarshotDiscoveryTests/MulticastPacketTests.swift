import Testing

@testable import EarshotDiscovery

/// The filter that decides which multicast packets from the network reach libavahi-core.
@Suite struct MulticastPacketTests {
    private static let name: [UInt8] = [8] + Array("_earshot".utf8) + [4] + Array("_tcp".utf8) + [5] + Array("local".utf8) + [0]
    /// The name in the first record or question.
    private static let pointer: [UInt8] = [0xC0, 12]

    private func record(_ type: UInt8, named name: [UInt8] = name, data: [UInt8] = [1, 97, 0]) -> [UInt8] {
        name + [0, type, 0x80, 1, 0, 0, 0, 120, 0, UInt8(data.count)] + data
    }

    private func packet(
        questions: UInt8 = 0, answers: UInt8 = 0, authorities: UInt8 = 0, others: UInt8 = 0, _ parts: [UInt8]...
    ) -> [UInt8] {
        [0, 0, 0x84, 0, 0, questions, 0, answers, 0, authorities, 0, others] + parts.joined()
    }

    private func passes(_ packet: [UInt8]) -> Bool { MulticastPacket.isHarmless(packet[...]) }

    @Test func whatIsOfDNSServiceDiscoveryPasses() {
        let question = Self.name + [0, 12, 0, 1]
        #expect(self.passes(self.packet(questions: 1, question)))
        #expect(self.passes(self.packet(questions: 1, answers: 1, question, self.record(12, named: Self.pointer))))
        #expect(self.passes(self.packet(questions: 1, authorities: 1, question, self.record(33, named: [1, 98] + Self.pointer))))
        let address = self.record(1, data: [1, 2, 3, 4])
        #expect(self.passes(self.packet(answers: 2, others: 1, self.record(12), self.record(16, data: []), address)))
        #expect(self.passes(self.packet()), "Avahi says of it that it is empty")
        #expect(self.passes(self.packet(answers: 1, self.record(12), [1, 2, 3])), "Avahi does not look behind the last record")
    }

    /// An alias (CNAME) record makes Avahi abort on an assertion, in any section of a packet.
    @Test func anAliasDoesNotPass() {
        let alias = self.record(5)
        #expect(!self.passes(self.packet(answers: 2, alias, self.record(12))))
        #expect(!self.passes(self.packet(answers: 2, self.record(12), alias)))
        #expect(!self.passes(self.packet(authorities: 1, alias)))
        #expect(!self.passes(self.packet(answers: 1, others: 1, self.record(12), alias)))
        #expect(!self.passes(self.packet(questions: 1, others: 1, Self.name + [0, 12, 0, 1], self.record(5, named: Self.pointer))))
        // A question about an alias is harmless.
        #expect(self.passes(self.packet(questions: 1, Self.name + [0, 5, 0, 1])))
    }

    /// If this filter and Avahi parsed a packet differently, an alias could pass the filter.
    @Test func whatIsNotWellFormedDoesNotPass() {
        let whole = self.packet(questions: 1, answers: 1, Self.name + [0, 12, 0, 1], self.record(12, named: Self.pointer))
        for length in 0..<whole.count { #expect(!self.passes(Array(whole.prefix(length))), "\(length) bytes of it") }
        for first: UInt8 in [0x40, 0x80, 0xBF] { #expect(!self.passes(self.packet(answers: 1, self.record(12, named: [first, 1, 0])))) }
        #expect(!self.passes(self.packet(answers: 2, self.record(12))))
        #expect(!self.passes([0, 0, 0x84, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]))
    }
}
