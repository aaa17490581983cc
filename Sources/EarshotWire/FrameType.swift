/// The type numbers of the frames, and the limits of their payloads.
///
/// A receiver must understand numbers below 0x80. It skips an unknown number from 0x80 up.
package enum FrameType: UInt8, Sendable, Hashable, CaseIterable {
    case hello = 0x01
    case proof = 0x02
    case refusal = 0x03
    case ping = 0x10
    case pong = 0x11
    case goodbye = 0x12
    case invite = 0x20
    case inviteAnswer = 0x21
    case inviteWithdraw = 0x22
    case sessionResume = 0x28
    case sessionEnd = 0x29
    case groupInvite = 0x2A
    case groupAnswer = 0x2B
    case groupRecord = 0x2C
    case groupWithdraw = 0x2D
    case groupNames = 0x2E
    case groupIndex = 0x2F
    case message = 0x30
    case messageReceipts = 0x31
    case resourceOffer = 0x40
    case resourceAccept = 0x41
    case resourceRefuse = 0x42
    case resourceChunk = 0x43
    case resourceEnd = 0x44
    case resourceDone = 0x45
    case resourceCancel = 0x46
    case resourceHave = 0x47
    case resourceFrom = 0x48
    case dataTicket = 0x50
    case dataUnavailable = 0x51
    case dataAttach = 0x58
    case streamOpen = 0x60
    case streamAccept = 0x61
    case streamRefuse = 0x62
    case streamData = 0x63
    case streamEnd = 0x64
    case streamDone = 0x65
    case streamAbort = 0x66
    case streamReroute = 0x67
    case streamRerouted = 0x68
    case verifyBegin = 0x70
    case verifyAnswer = 0x71
    case verifyReveal = 0x72
    case verifyEnd = 0x73

    /// The first number that a receiver may skip.
    package static let firstSkippable: UInt8 = 0x80

    /// The longest payload of this type, in bytes: the sum of its fields at their longest. A header that announces more is refused without
    /// waiting for the payload.
    package var payloadLimit: Int {
        let identifier = 16
        let refusal = 2 + 2 + WireLimits.explanation
        return switch self {
        case .hello: WireLimits.helloPayload
        case .proof: 2 + WireLimits.signature
        case .refusal: refusal
        case .ping, .pong: 8
        case .goodbye: 0
        case .invite: identifier + 4 + 2 + WireLimits.invitationContext
        case .inviteAnswer: identifier + 1 + identifier
        case .inviteWithdraw: identifier + 1
        case .sessionResume, .sessionEnd, .resourceDone, .streamDone: identifier
        case .message: 3 * identifier + 1 + 8 + 8 + 1 + WireLimits.contentType + 4 + WireLimits.messageBody
        case .groupInvite:
            identifier + 4 + WireLimits.groupCharter + WireLimits.groupTerms + 1 + 4 + 4 + 2 + WireLimits.invitationContext
        case .groupAnswer: identifier + 1 + WireLimits.groupSeat
        case .groupWithdraw: identifier + 1
        case .groupRecord: identifier + WireLimits.groupRecord
        case .groupNames: 1 + WireLimits.groupsPerFrame * 2 * identifier
        case .groupIndex: identifier + 2 + WireLimits.groupIndex * identifier
        case .messageReceipts: 2 + WireLimits.receiptsPerFrame * (identifier + 1)
        case .resourceOffer: 2 * identifier + 1 + 8 + 2 + WireLimits.resourceName + WireLimits.fileAttributes
        case .resourceAccept: identifier + 8 + 8
        case .resourceRefuse, .resourceCancel, .streamRefuse, .streamAbort: identifier + refusal
        case .resourceChunk: identifier + 8 + 4 + WireLimits.chunkData
        case .resourceEnd: identifier + 1 + 1 + WireLimits.digest
        case .dataTicket: identifier + WireLimits.dataToken
        case .dataUnavailable: identifier
        case .dataAttach: WireLimits.dataToken
        case .resourceHave: identifier + 8 + WireLimits.prefixDigest
        case .resourceFrom: identifier + 8
        case .streamOpen: 2 * identifier + 1 + StreamName.byteLimit
        case .streamAccept, .streamEnd, .streamReroute, .streamRerouted: identifier + 8
        case .streamData: identifier + 4 + WireLimits.streamData
        case .verifyBegin, .verifyAnswer, .verifyReveal: identifier + WireLimits.verificationPart
        case .verifyEnd: identifier + 1
        }
    }
}

extension Frame {
    /// The type number of the frame.
    package var type: FrameType {
        switch self {
        case .hello: .hello
        case .proof: .proof
        case .refusal: .refusal
        case .ping: .ping
        case .pong: .pong
        case .goodbye: .goodbye
        case .invite: .invite
        case .inviteAnswer: .inviteAnswer
        case .inviteWithdraw: .inviteWithdraw
        case .sessionResume: .sessionResume
        case .sessionEnd: .sessionEnd
        case .message: .message
        case .group(let frame): frame.type
        case .messageReceipts: .messageReceipts
        case .resource(let frame): frame.type
        case .stream(let frame): frame.type
        case .dataTicket: .dataTicket
        case .dataUnavailable: .dataUnavailable
        case .dataAttach: .dataAttach
        case .verification(let frame): frame.type
        }
    }
}
