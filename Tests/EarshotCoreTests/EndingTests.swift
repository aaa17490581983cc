import Testing

@testable import EarshotCore

/// The consequences of the end of a session, of a connection, or of the trust in a peer.
@Suite struct EndingTests {
    /// Compares with the table in the specification's article.
    @Test func theFatesEqualTheTableOfTheSpecification() {
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
