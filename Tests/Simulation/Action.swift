/// What a schedule has happen: a person's wish, a fault, what discovery sees, an attack. Everything else (which link delays what, what a core
/// draws) follows from the seed and from what happened before.
///
/// An action names what it is about by numbers that are taken modulo what there is when its time comes, so that it means something in every
/// schedule, also in one from which others were dropped.
package struct Action: Sendable, Hashable {
    package enum Verb: String, Sendable, Hashable, CaseIterable {
        // People
        /// PERSON PEER SECONDS NAMING
        case invite
        /// PERSON INVITATION
        case withdraw
        /// PERSON INVITATION DECISION ALWAYS
        case respond
        /// PERSON INVITATION
        case await
        /// PERSON PEER TRUST SECONDS NAMING
        case trust
        /// PERSON SESSION
        case leave
        /// PERSON PEER SECONDS NAMING
        case verify
        /// PERSON PEER: trusts while digits are shown, where they are
        case match
        /// PERSON PEER
        case mismatch
        /// PERSON PEER
        case giveUp = "give-up"
        /// PERSON SETTING VALUE
        case settings
        /// PERSON NAME
        case rename
        /// PERSON PEER NAMING
        case ask
        /// PERSON PEER NEED: another part of the node needs a session, or a connection
        case need
        /// PERSON PEER COUNT NAMING: opens streams
        case open
        /// PERSON STREAM
        case accept
        /// PERSON PEER SECONDS NAME
        case acceptNext = "accept-next"
        /// PERSON CALL: a caller that has opened a stream, or waits for one, goes
        case gone
        /// PERSON STREAM BYTES
        case write
        /// PERSON STREAM: its writer has said everything
        case finish
        /// PERSON STREAM
        case read
        /// PERSON STREAM HOW
        case abort
        /// PERSON PEER: something is to go over a data connection
        case move
        /// PERSON TRANSFER: it has come to its end
        case moved
        /// PERSON PEER COUNT MODE TIMEOUT: messages, reliable, queued, unreliable, or reliable to all
        case send
        /// PERSON MESSAGE: one of the last ones once more
        case again
        /// PERSON COUNT: the oldest ones
        case readMessages = "read-messages"
        /// PERSON PEER SIZE MODE: by its path, queued, as a body, as a directory, or kept first
        case sendFile = "send-file"
        /// PERSON RESOURCE DECISION
        case answerFile = "answer-file"
        /// PERSON RESOURCE HOW: cancels or deletes it, lets go of its content, or its caller goes
        case removeFile = "remove-file"
        /// PERSON RESOURCE SIZE: the source is another one
        case changeFile = "change-file"
        /// PERSON HOW: makes a group, open or closed
        case group
        /// PERSON GROUP PEER SECONDS
        case inviteToGroup = "invite-to-group"
        /// PERSON GROUP HOW: leaves it, dissolves it, or gives it another name
        case endGroup = "end-group"
        /// PERSON GROUP MEMBER INVITED
        case removeMember = "remove-member"
        /// PERSON GROUP COUNT MODE TIMEOUT: messages, reliable, queued or unreliable
        case sendToGroup = "send-to-group"
        /// PERSON GROUP SIZE MODE: a file or a directory by its path, or a file that is kept first; queued or not
        case shareFile = "share-file"

        // Machines
        /// MACHINE EFFECTS MILLISECONDS: stops after so many effects of its next input, and starts again
        case crash
        /// MACHINE MILLISECONDS: stops in order, and starts again
        case restart
        /// MACHINE MILLISECONDS: a backup of its groups is made; where there is one, it starts again from that
        case restore
        /// MACHINE MILLISECONDS
        case suspend
        /// MACHINE SECONDS: somebody sets its clock
        case jump
        /// MACHINE MODE MILLISECONDS
        case disk

        // The network
        /// MACHINE MACHINE MILLISECONDS: nothing gets through between the two
        case part
        /// LINK: reset for both sides
        case reset
        /// LINK SIDE: reset, and one side does not notice
        case halve
        /// MACHINE MACHINE MILLISECONDS MILLISECONDS: what passes between the two takes so much longer, for so long
        case slow
        /// MACHINE MILLISECONDS: takes no data connections
        case shut
        /// CONNECTION: a data connection is lost
        case cut

        // Discovery
        /// MACHINE PEER INTERFACE
        case see
        /// MACHINE PEER INTERFACE
        case lose
        /// MACHINE
        case forget
        /// MACHINE STATE
        case discovery

        // Hostile peers
        /// HOSTILE VICTIM KEY
        case approach
        /// HOSTILE LINK COUNT SEED
        case say
        /// HOSTILE VICTIM PEER SEED: advertises under another peer's id
        case forge
        /// HOSTILE VICTIM COUNT SEED: comes with many keys, and asks with each
        case swarm
        /// HOSTILE LINK COUNT SEED: opens streams, and aborts them or not
        case flood
        /// HOSTILE LINK
        case hangUp = "hang-up"
        /// HOSTILE PLACE COUNT SEED: one that is in a group lets in keys that nobody has, which leave it or not
        case crowd

        /// How many numbers follow it.
        package var arity: Int {
            switch self {
            case .forget: 1
            case .again, .readMessages, .withdraw, .await, .leave, .match, .mismatch, .giveUp, .rename, .move, .moved, .restart, .restore,
                .suspend,
                .jump, .shut, .halve, .discovery, .hangUp, .accept, .gone, .finish, .read, .group:
                2
            case .reset, .cut: 1
            case .answerFile, .removeFile, .changeFile, .settings, .ask, .need, .crash, .disk, .part, .see, .lose, .approach, .write,
                .abort, .endGroup:
                3
            case .inviteToGroup, .removeMember, .sendFile, .shareFile, .invite, .respond, .verify, .slow, .say, .forge, .swarm, .open,
                .acceptNext, .flood, .crowd:
                4
            case .trust, .send, .sendToGroup: 5
            }
        }

        /// Whether a person, a program or discovery does it to a machine that works.
        var needsNode: Bool {
            switch self {
            case .invite, .withdraw, .respond, .await, .trust, .leave, .verify, .match, .mismatch, .giveUp, .settings, .rename, .ask,
                .need, .move, .moved, .send, .again, .readMessages, .see, .lose, .forget, .discovery, .open, .accept, .acceptNext, .gone,
                .write, .finish, .read, .abort, .sendFile, .answerFile, .removeFile, .changeFile, .group, .inviteToGroup, .endGroup,
                .removeMember, .sendToGroup, .shareFile:
                true
            case .crash, .restart, .restore, .suspend, .jump, .disk, .part, .reset, .halve, .slow, .shut, .cut, .approach, .say, .forge,
                .swarm,
                .flood, .hangUp, .crowd:
                false
            }
        }
    }

    /// Since the schedule's beginning.
    package var milliseconds: Int
    package var verb: Verb
    package var arguments: [Int]

    package init(_ milliseconds: Int, _ verb: Verb, _ arguments: [Int]) {
        self.milliseconds = milliseconds
        self.verb = verb
        self.arguments = arguments
    }

    subscript(index: Int) -> Int { self.arguments[index] }
}
