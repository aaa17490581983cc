import Testing

@testable import EarshotCore

/// What ends with a session, a connection, or the trust in a peer.
@Suite struct EndingTests {
    /// As the table of the specification's article has it.
    @Test func theTable() {
        typealias Row = [Ending.Dependent]
        let ends: [Ending: Row] = [
            .connection: [.dataConnections, .comparison, .streams],
            .session: [.messages, .queuedMessages, .dataConnections, .transfers, .queuedTransfers, .openingStreams, .streams],
            .trust: [.messages, .queuedMessages, .transfers, .queuedTransfers, .openingStreams],
            .declinedInvitation: [.messages, .queuedMessages, .transfers, .queuedTransfers, .openingStreams, .streams],
            .invitation: [.messages, .transfers, .openingStreams, .streams],
        ]
        let waits: [Ending: Row] = [
            .connection: [.messages, .queuedMessages, .transfers, .queuedTransfers, .openingStreams],
            .invitation: [.queuedMessages, .queuedTransfers],
        ]
        for ending in Ending.allCases {
            let fates = Dictionary(grouping: Ending.Dependent.allCases) { ending.fate(of: $0) }
            #expect(fates[.ends, default: []] == ends[ending, default: []], "\(ending)")
            #expect(fates[.waits, default: []] == waits[ending, default: []], "\(ending)")
        }
    }
}
