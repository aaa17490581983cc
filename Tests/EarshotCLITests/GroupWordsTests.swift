import ArgumentParser
import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// Arguments and output about groups; the laboratory's `GroupTests` run the commands.
@Suite struct GroupWordsTests {
    private static let date = Date(timeIntervalSince1970: 1_700_000_000)
    private static let team: GroupID = "7c1b8a52-93f0-4c6b-9d0c-6f1f6a2b7a11"
    private static let creator: PeerID = "AAAAAAAAAAAA"

    private static func member(
        _ name: String, _ id: PeerID, _ state: ControlAPI.GroupMember.State = .connected, invitedBy: PeerID = creator,
        error: ControlAPI.Failure? = nil
    ) -> ControlAPI.GroupMember {
        ControlAPI.GroupMember(peerID: id, name: name, state: .known(state), error: error, joinedAt: Self.date, invitedBy: invitedBy)
    }

    private static func group(
        _ name: String = "team", id: GroupID = team, closed: Bool = false, unprotected: Bool = false,
        members: [ControlAPI.GroupMember] = [], removalsLeft: Int? = nil
    ) -> ControlAPI.Group {
        ControlAPI.Group(
            id: id, name: name, creator: Self.creator, closed: closed, unprotected: unprotected, state: .known(.joined),
            role: .known(.member), members: members, removalsLeft: removalsLeft, createdAt: Self.date)
    }

    @Test func whoInvitesIsWarnedWhenFewCanBeTakenOut() {
        func warning(_ left: Int?) -> String? { GroupInviteCommand.warning(of: Self.group(removalsLeft: left)) }
        #expect(warning(nil) == nil && warning(GroupInviteCommand.fewRemovals + 1) == nil)
        #expect(warning(GroupInviteCommand.fewRemovals)?.hasPrefix("only 16 more members can be removed from team; ") == true)
        let words = "no more members can be removed from team; to make a new group, use earshot group create NAME --from 7c1b8a52-93f"
        #expect(warning(0) == words)
    }

    private static func message(_ body: String, in group: String) -> ControlAPI.Message {
        ControlAPI.Message(
            id: "m", direction: .known(.incoming), sender: .init(id: "P", name: "alice"),
            body: Array(body.utf8), contentType: "text/plain", mode: .known(.reliable), sentAt: Self.date, receivedAt: Self.date,
            state: .known(.unread), group: .init(id: Self.team, name: group))
    }

    private static func rows(_ table: Table) -> [String] {
        table.render(width: nil, bold: false).split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
    }

    @Test func aMessageSaysInWhichGroup() {
        #expect(Render.message(Self.message("hello", in: "team")) == "\(Words.time(Self.date)) alice in team: hello\n")
    }

    @Test func groupsAreATable() {
        let members = [Self.member("alice", Self.creator), Self.member("bob", "BBBBBBBBBBBBBB", .notConnected)]
        #expect(
            Self.rows(Render.groups([Self.group(members: members), Self.group("ops", id: "0123", closed: true, unprotected: true)])) == [
                "NAME ID ROLE MEMBERS STATE", "team \(Self.team) member 2, 1 connected joined",
                "ops 01230000-0000-0000-0000-000000000000 member 0, 0 connected joined, closed, unprotected",
            ])
    }

    @Test func membersHaveWhoLetThemInAndWhatIsWrong() {
        let group = Self.group(members: [
            Self.member("alice", Self.creator), Self.member("bob", "BBBBBBBBBBBBBBBB"),
            Self.member(
                "carol", "CCCCCCCCCCCCCCCC", .notConnected, invitedBy: "BBBBBBBBBBBBBBBB", error: .init(code: "x", message: "no TLS")),
            Self.member("dave", "DDDDDDDDDDDDDDDD", .full, invitedBy: "EEEEEEEEEEEEEEEE"),
        ])
        let time = Words.time(Self.date)
        #expect(
            Self.rows(Render.members(of: group)) == [
                "NAME PEER-ID STATE SINCE INVITED-BY", "alice AAAAAAAAAAAA connected \(time) (creator)",
                "bob BBBBBBBBBBBB connected \(time) alice", "carol CCCCCCCCCCCC not_connected: no TLS \(time) bob",
                "dave DDDDDDDDDDDD full \(time) EEEEEEEEEEEE",
            ])
        #expect(Render.groupHead(group) == "team (\(Self.team)), joined, made \(time)\n")
    }

    @Test func anInvitationNamesItsGroup() {
        let invitation = ControlAPI.Invitation(
            id: "i", direction: .known(.incoming), peerID: "B", peerName: "bob", context: Base64Bytes([]), state: .known(.pending),
            createdAt: Self.date,
            expiresAt: Self.date, group: .init(id: Self.team, name: "team", creator: Self.creator, members: 1))
        #expect(Self.rows(Render.invitations([invitation]))[1].contains(" team by AAAAAAAAAAAA, 1 member"))
        let own = ControlAPI.Invitation(
            id: "i", direction: .known(.incoming), peerID: Self.creator, peerName: "alice", context: Base64Bytes([]),
            state: .known(.pending), createdAt: Self.date, expiresAt: Self.date,
            group: .init(id: Self.team, name: "team", creator: Self.creator, members: 1))
        #expect(Self.rows(Render.invitations([own]))[1].contains(" team by alice, 1 member"))
    }

    @Test(arguments: ["\u{1B}[2J", "\u{202E}", "\u{200B}", "\u{9B}1A", "\u{7F}", "\0", "\n", "\u{2028}"])
    func nothingThatATerminalObeysIsShown(_ text: String) {
        let isBare = { (output: String) in
            output.dropLast().unicodeScalars.contains { text.unicodeScalars.first == $0 && $0 != "\n" }
                || (text == "\n" && output.dropLast().contains("\n"))
        }
        let group = Self.group(
            text,
            members: [Self.member(text, "B", .notConnected, invitedBy: "C", error: .init(code: Tolerant(rawValue: text), message: text))])
        // A table has a line for its titles, and a line for each row.
        for table in [Render.groups([group]), Render.members(of: group)] {
            let lines = table.render(width: nil, bold: false).split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count == 3 && !lines.contains { isBare("\($0)x") })
        }
        #expect(!isBare(Render.groupHead(group)))
        #expect(!isBare(Render.message(Self.message("x", in: text))))
        #expect(!isBare(Render.event(.init(epoch: "e", seq: 1, time: Date(), type: .known(.groupChanged), group: group))))
    }

    @Test func aNameOfTwoIsOfferedByItsID() {
        let other: GroupID = "0000000a-93f0-4c6b-9d0c-6f1f6a2b7a11"
        let twins = [Self.member("bob", "BBBBBBBBBBBBBBBB"), Self.member("bob", "CCCCCCCCCCCCCCCC"), Self.member("alice", Self.creator)]
        let source = CompletionSource(
            peers: [], sessions: [], invitations: [], resources: [],
            groups: [
                Self.group(members: twins), Self.group("team", id: other), Self.group("7C1B8A52", id: "11111111-0"),
                Self.group("ops", id: "22", members: twins),
            ])
        #expect(source.groupNames.map(\.text) == [Words.short(Self.team), Words.short(other), "11111111-000", "ops"])
        #expect(source.groupMembers.map(\.text) == ["BBBBBBBBBBBB", "CCCCCCCCCCCC", "alice"])
    }

    @Test func aMessageToAGroupNamesNoPeer() throws {
        let command = try #require(try EarshotCommand.parseAsRoot(["send", "--group", "team", "two", "words"]) as? SendCommand)
        #expect(command.group == "team" && command.peer == nil && command.text == ["two", "words"])
        let create = try #require(
            try EarshotCommand.parseAsRoot(["group", "create", "team", "bob", "carol", "--from", "old", "--closed"]) as? GroupCreateCommand)
        #expect(create.peers == ["bob", "carol"] && create.from == "old" && create.closed && !create.unprotected)
        let remove = try #require(
            try EarshotCommand.parseAsRoot(["group", "remove", "team", "bob", "--invited"]) as? GroupRemoveCommand)
        #expect(remove.group == "team" && remove.peer == "bob" && remove.invited)
    }

    /// All peers are invited, and the worst outcome determines the exit status.
    @Test(
        arguments: [
            ([ControlAPI.Invitation.State.accepted, .accepted], 0), ([.accepted, .timedOut], 75), ([.timedOut, .declined, .accepted], 77),
            ([.cancelled], 1),
        ] as [([ControlAPI.Invitation.State], Int32)])
    func theWorstAnswerIsTheExitCode(_ states: [ControlAPI.Invitation.State], _ status: Int32) {
        var outcomes = GroupInvitationOutcomes(group: "team")
        for state in states {
            outcomes.add(
                ControlAPI.Invitation(
                    id: "i", direction: .known(.outgoing), peerID: "B", peerName: "bob", context: Base64Bytes([]), state: .known(state),
                    createdAt: Self.date,
                    expiresAt: Self.date))
        }
        let ended: Int32
        do throws(CommandFailure) {
            try outcomes.end()
            ended = 0
        } catch { ended = error.status.rawValue }
        #expect(ended == status)
    }
}
