/// A scheduled event: a user's call, a fault, a discovery report, or an attack. Everything else (such as delays and the cores' random
/// draws) follows from the seed and from earlier events.
///
/// An action names its objects by numbers, taken modulo the number of objects that exist at its time. It is therefore valid in every
/// schedule, also in one from which other actions were dropped.
package struct Action: Sendable, Hashable {
    package enum Verb: String, Sendable, Hashable, CaseIterable {
        // Users
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
        /// PERSON PEER: trusts the peer while digits are shown, if they are
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
        /// PERSON CALL: a caller that has opened a stream, or waits for one, disconnects
        case gone
        /// PERSON STREAM BYTES
        case write
        /// PERSON STREAM: its writer has written everything
        case finish
        /// PERSON STREAM
        case read
        /// PERSON STREAM HOW
        case abort
        /// PERSON PEER COUNT MODE TIMEOUT: messages, reliable, queued, unreliable, or reliable to all
        case send
        /// PERSON MESSAGE: sends one of the last messages again
        case again
        /// PERSON COUNT: reads the oldest messages
        case readMessages = "read-messages"
        /// PERSON PEER SIZE MODE: by its path, queued, as a body, as a directory, or written to the spool first
        case sendFile = "send-file"
        /// PERSON RESOURCE DECISION
        case answerFile = "answer-file"
        /// PERSON RESOURCE HOW: cancels or deletes it, drops its content, or its caller disconnects
        case removeFile = "remove-file"
        /// PERSON RESOURCE SIZE: the source changes
        case changeFile = "change-file"
        /// PERSON HOW: creates a group, open or closed
        case group
        /// PERSON GROUP PEER SECONDS
        case inviteToGroup = "invite-to-group"
        /// PERSON GROUP HOW: leaves, dissolves or renames the group
        case endGroup = "end-group"
        /// PERSON GROUP MEMBER INVITED
        case removeMember = "remove-member"
        /// PERSON GROUP COUNT MODE TIMEOUT: messages, reliable, queued or unreliable
        case sendToGroup = "send-to-group"
        /// PERSON GROUP SIZE MODE: a file or a directory by its path, or a file that is written to the spool first; queued or not
        case shareFile = "share-file"

        // Machines
        /// MACHINE EFFECTS MILLISECONDS: crashes after so many effects of its next input, and restarts
        case crash
        /// MACHINE MILLISECONDS: stops in order, and restarts
        case restart
        /// MACHINE MILLISECONDS: backs up its groups, or restarts from the backup if there is one
        case restore
        /// MACHINE MILLISECONDS
        case suspend
        /// MACHINE SECONDS: its clock is set
        case jump
        /// MACHINE MODE MILLISECONDS
        case disk

        // The network
        /// MACHINE MACHINE MILLISECONDS: partitions the two machines
        case part
        /// LINK: resets both sides
        case reset
        /// LINK SIDE: resets the link, and one side does not notice
        case halve
        /// MACHINE MACHINE MILLISECONDS MILLISECONDS: delays packets between the two by that time, for that time
        case slow
        /// MACHINE MILLISECONDS: accepts no data connections
        case shut
        /// CONNECTION: loses a data connection
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
        /// HOSTILE VICTIM PEER SEED: advertises another peer's id
        case forge
        /// HOSTILE VICTIM COUNT SEED: connects with many keys, and invites with each
        case swarm
        /// HOSTILE LINK COUNT SEED: opens streams, and aborts some of them
        case flood
        /// HOSTILE LINK
        case hangUp = "hang-up"
        /// HOSTILE PLACE COUNT SEED: as a member of a group, admits keys that nobody has, some of which leave
        case crowd

        // LocalSend devices
        /// DEVICE VICTIM COUNT SEED: announces itself by datagrams and `register`, or others if there are several
        case announce
        /// DEVICE VICTIM COUNT SEED: offers files or a text
        case offer
        /// DEVICE SESSION SEED: uploads the files of a session, or pretends to
        case upload
        /// DEVICE VICTIM HOW SEED: hangs up, or cancels an offer or a session
        case cancelOffer = "cancel-offer"
        /// DEVICE VICTIM COUNT SEED: guesses the PIN
        case guess
        /// PERSON DEVICE TRUST SECONDS NAMING
        case trustDevice = "trust-device"
        /// PERSON SETTING VALUE: changes the settings for devices, or looks for devices
        case changeDevices = "change-devices"
        /// PERSON DEVICE KIND NAMING HOW: sends messages or a file
        case sendToDevice = "send-to-device"
        /// PERSON MESSAGE: cancels a queued message for a device
        case cancelMessage = "cancel-message"
        /// DEVICE HOW MILLISECONDS SEED: is away, busy or replaced for a while, or cancels what it receives
        case disturbDevice = "disturb-device"

        /// The number of arguments.
        package var arity: Int {
            switch self {
            case .forget: 1
            case .again, .readMessages, .withdraw, .await, .leave, .match, .mismatch, .giveUp, .rename, .restart, .restore,
                .suspend,
                .jump, .shut, .halve, .discovery, .hangUp, .accept, .gone, .finish, .read, .group, .cancelMessage:
                2
            case .reset, .cut: 1
            case .upload, .changeDevices, .answerFile, .removeFile, .changeFile, .settings, .ask, .need, .crash, .disk, .part, .see, .lose,
                .approach, .write,
                .abort, .endGroup:
                3
            case .inviteToGroup, .removeMember, .sendFile, .shareFile, .invite, .respond, .verify, .slow, .say, .forge, .swarm, .open,
                .acceptNext, .flood, .crowd, .announce, .offer, .cancelOffer, .guess, .disturbDevice:
                4
            case .trust, .send, .sendToGroup, .trustDevice, .sendToDevice: 5
            }
        }

        /// Whether the action happens to a running machine: a user, a program or discovery causes it.
        var needsNode: Bool {
            switch self {
            case .invite, .withdraw, .respond, .await, .trust, .leave, .verify, .match, .mismatch, .giveUp, .settings, .rename, .ask,
                .need, .send, .again, .readMessages, .see, .lose, .forget, .discovery, .open, .accept, .acceptNext, .gone,
                .write, .finish, .read, .abort, .sendFile, .answerFile, .removeFile, .changeFile, .group, .inviteToGroup, .endGroup,
                .removeMember, .sendToGroup, .shareFile, .trustDevice, .changeDevices, .sendToDevice, .cancelMessage:
                true
            case .crash, .restart, .restore, .suspend, .jump, .disk, .part, .reset, .halve, .slow, .shut, .cut, .approach, .say, .forge,
                .swarm,
                .flood, .hangUp, .crowd, .announce, .offer, .upload, .cancelOffer, .guess, .disturbDevice:
                false
            }
        }
    }

    /// The time since the schedule's beginning.
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
