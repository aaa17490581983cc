import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Files that are sent to all members of a group: one transfer per member, few at a time.
@Suite struct GroupFileTests {
    /// A group of that many other peers, to which peer 0 sends something. Stores the ids of its transfers.
    private struct Share {
        var bench: GroupBench
        let group: GroupID
        let id = ShareID(high: 8, low: 8)
        private(set) var transfers: [ResourceID] = []

        init(to count: Int, isQueued: Bool = false, change: (inout CoreSettings) -> Void = { _ in }) throws {
            self.bench = try GroupBench(count + 1, change: change)
            try self.bench.connectAll()
            self.group = try self.bench.create(0)
            for index in 1...count { try self.bench.letIn(index, by: 0, to: self.group) }
            let conversations = try self.bench.peers[0].core.conversations(inGroup: "team")
            #expect(conversations.count == count)
            let drafts = conversations.enumerated().map { index, conversation in
                ResourceDraft(
                    id: ResourceID(high: 9, low: UInt64(index + 1)), to: conversation, shareID: self.id, name: "x", kind: .file, size: 10,
                    path: "/x", source: .path, stamp: "1", isQueued: isQueued)
            }
            self.transfers = drafts.map(\.id)
            self.call(.send(drafts))
        }

        @discardableResult
        mutating func call(_ request: ResourceRequest) -> Answer? {
            self.bench.peers[0].call(.resource(request))
            self.bench.settle()
            return self.bench.peers[0].answers[self.bench.peers[0].lastCall]
        }

        mutating func report(_ id: ResourceID, _ report: TransferReport) {
            self.bench.peers[0].handle(.transfer(id, report))
            self.bench.settle()
        }

        /// Reports the source of a transfer as open, so that the transfer is offered.
        mutating func open(_ id: ResourceID) { self.report(id, .opened(OpenedSource(size: 10, stamp: "1"))) }

        /// The transfers whose mover has begun.
        var begun: [ResourceID] {
            self.transfers.filter { id in
                (self.bench.peers[0].orders[id] ?? []).contains { if case .open = $0 { true } else { false } }
            }
        }

        func row(_ id: ResourceID, at index: Int = 0) throws -> Resource {
            try self.bench.peers[index].core.resource(id, at: self.bench.peers[index].now.monotonic)
        }

        /// Returns the member that receives a transfer.
        func member(_ id: ResourceID) throws -> Int { try #require(self.bench.ids.firstIndex(of: try self.row(id).peerID)) }
    }

    @Test func everyMemberIsOfferedItInTheGroup() throws {
        var share = try Share(to: 3)
        for id in share.transfers { share.open(id) }
        for id in share.transfers {
            let (own, member) = (try share.row(id), try share.member(id))
            #expect(own.group == GroupLabel(id: share.group, name: "team") && own.shareID == share.id)
            let theirs = try share.row(id, at: member)
            #expect(theirs.group == own.group && theirs.shareID == nil && theirs.peerID == share.bench.ids[0])
            #expect(share.bench.peers[member].core.sessions.isEmpty, "no session comes of it")
            // The member has accepted it: room is reserved.
            #expect((share.bench.peers[member].orders[id] ?? []).contains { if case .resume = $0 { true } else { false } })
        }
        #expect(Set(try share.transfers.map(share.member)) == [1, 2, 3])
    }

    @Test func fewMoveAtATime() throws {
        let limit = EarshotLimits.shareTransfers
        var share = try Share(to: limit + 2)
        #expect(share.begun == Array(share.transfers.prefix(limit)))
        // One transfer has ended, and the next one begins.
        share.call(.remove(share.transfers[0]))
        share.report(share.transfers[0], .stopped)
        #expect(share.begun == Array(share.transfers.prefix(limit + 1)))
        // After none has moved for a while, the stalled transfers no longer delay the others.
        share.bench.advance(EarshotLimits.shareStallTime - .milliseconds(1))
        #expect(share.begun.count == limit + 1)
        share.bench.advance(.milliseconds(1))
        #expect(share.begun == share.transfers)
    }

    @Test func whoIsTakenOutGetsNoMoreOfIt() throws {
        var share = try Share(to: 2)
        for id in share.transfers { share.open(id) }
        let gone = share.transfers[0]
        let member = try share.member(gone)
        share.bench.ask(0, .remove("team", peer: share.bench.ids[member].description, withInvited: false))
        #expect(try share.row(gone).state == .failed && share.row(gone).error == .notMember)
        #expect(try share.row(gone, at: member).error == .notMember)
        #expect(try share.row(share.transfers[1]).error == nil)
    }

    @Test func whoIsBlockedGetsNoMoreOfIt() throws {
        var share = try Share(to: 2)
        for id in share.transfers { share.open(id) }
        let member = try share.member(share.transfers[0])
        share.bench.peers[0].call(.setTrust(.blocked, share.bench.ids[member].description, until: nil))
        #expect(try share.row(share.transfers[0]).state == .failed)
        #expect(try share.row(share.transfers[1]).error == nil)
    }

    @Test func aPersonIsAskedAboutFilesOfStrangers() throws {
        var share = try Share(to: 2) { $0.groupFiles = .ask }
        let trusting = try share.member(share.transfers[1])
        share.bench.peers[trusting].call(.setTrust(.trusted, share.bench.ids[0].description, until: nil))
        for id in share.transfers { share.open(id) }
        #expect(try share.row(share.transfers[0], at: share.member(share.transfers[0])).state == .offered)
        func isTaken(_ id: ResourceID) throws -> Bool {
            let orders = share.bench.peers[try share.member(id)].orders[id] ?? []
            return orders.contains { if case .resume = $0 { true } else { false } }
        }
        #expect(try !isTaken(share.transfers[0]))
        #expect(try isTaken(share.transfers[1]), "it trusts the sender")
        let asked = try share.member(share.transfers[0])
        share.bench.peers[asked].call(.resource(.respond(share.transfers[0], .accept)))
        #expect(try isTaken(share.transfers[0]))
    }

    @Test func allOfItIsCancelledAtOnce() throws {
        var share = try Share(to: 3)
        for id in share.transfers { share.open(id) }
        let answer = share.call(.removeShare(share.id))
        guard case .resources(let rows)? = answer else { return #expect(Bool(false), "\(String(describing: answer))") }
        #expect(rows.map(\.id) == share.transfers && rows.allSatisfy { $0.state == .cancelled })
        for id in share.transfers { #expect(try share.row(id, at: share.member(id)).state == .cancelled) }
        for id in share.transfers { share.report(id, .stopped) }
        // After all transfers have ended, the same request deletes them.
        #expect(share.call(.removeShare(share.id)) == .resources([]))
        #expect(share.call(.removeShare(share.id))?.error == .notFound)
        #expect(throws: EarshotError.self) { try share.row(share.transfers[0]) }
    }

    /// A receiver answers a repeated offer of its sender without a session of the two, and after a restart, until one of them leaves the
    /// group.
    @Test func endsAreRemembered() throws {
        var share = try Share(to: 1)
        let (id, sender) = (share.transfers[0], share.bench.ids[0])
        share.open(id)
        for input in [.call(CallID(number: 77), .resource(.remove(id))), .transfer(id, .stopped)] as [Input] {
            share.bench.peers[1].handle(input)
        }
        #expect(share.bench.peers[1].call(.resource(.remove(id))) == .done)
        let ended = try #require(share.bench.peers[1].core.transfers.ended(id, of: sender))
        #expect(ended.error == .cancelled)
        var again = share.bench.peers[1].restarted()
        again.handle(.transfers([], [ended]))
        #expect(again.core.transfers.ended(id, of: sender) == ended)
        // A session of the two that begins and ends does not end the group's transfers. The other side, which did not ask for the session,
        // ends it at once.
        let invitation = share.bench.peers[1].invite(on: try share.bench.link(1, 0))
        #expect(share.bench.respond(1, invitation, .accept)?.invitation?.sessionID != nil)
        #expect(share.bench.peers[1].core.transfers.ended(id, of: sender) == ended)
        #expect(share.bench.ask(1, .leave(share.group.description)) != nil)
        #expect(share.bench.peers[1].core.transfers.endedPeers == 0)
    }

    @Test func whoIsAwayIsWaitedFor() throws {
        for isQueued in [false, true] {
            var share = try Share(to: 2, isQueued: isQueued)
            let away = share.transfers[1]
            let member = try share.member(away)
            share.open(share.transfers[0])
            share.bench.disconnect(0, member)
            share.report(away, .stopped)
            #expect(try !share.row(away).state.isFinal)
            try share.bench.connect(0, member)
            share.open(away)
            #expect(try share.row(away, at: member).group?.id == share.group)
        }
    }

    @Test func aloneThereIsNobodyToSendTo() throws {
        var bench = try GroupBench(1)
        _ = try bench.create(0)
        #expect { try bench.peers[0].core.conversations(inGroup: "team") } throws: { ($0 as? EarshotError)?.code == .invalidParameter }
        #expect { try bench.peers[0].core.conversations(inGroup: "other") } throws: { ($0 as? EarshotError)?.code == .unknownGroup }
    }
}
