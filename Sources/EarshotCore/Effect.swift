package import EarshotWire

/// What a ``NodeCore`` has its shell do.
package enum Effect: Sendable, Equatable {
    /// Write frames on a control connection, if it still stands.
    case send(LinkID, [Frame])
    /// End a control connection in order, or with a reason.
    case close(LinkID, Refusal?)
    /// Dial a peer: report first that it has begun, or that there is nowhere to dial, and then what has come of it.
    case dial(PeerID, DialPlan)
    /// Look up where a peer of the settings is, and dial it there.
    case dialConfigured(ConfiguredPeer)
    /// Write these in one transaction, behind all that were asked for before, and report what has become of it.
    case commit(CommitID, [StoreOperation])
    /// Tell the readers of events.
    case publish(CoreEvent)
    /// Answer a caller.
    case answer(CallID, Answer)
    /// Charge the peer of a control connection so many bytes until `release`.
    case hold(HoldID, LinkID, bytes: Int)
    case release(HoldID)
    /// What is remembered of a peer's TLS, for the handshakes to come.
    case pin(PeerID, TLSPin)
    /// Write to the log.
    case log(Notice)
    case dataPath(TransferID, DataPathEffect)
    /// Write unreliable messages on a control connection, at once.
    case sendUnreliable(LinkID, UnreliableMessages)
    /// Report `.flush` once what callers have asked for by now has come in, so that it goes out together.
    case flushSoon(Conversation)
    /// Change the outbox on disk, in one transaction, behind all changes that were asked for before; report it as kept.
    case keep(KeepID, [OutboxChange])
    /// Put messages of a control connection's peer into the inbox, in their order, and charge the peer for them until that is done; report
    /// them as delivered.
    case deliver(LinkID, [InboxMessage])
    /// Read bodies of the outbox, of messages of one conversation.
    case loadBodies(Conversation, [MessageID])
    /// Read which of a peer's messages were read here, as far as it has not taken note.
    case loadReceipts(PeerID)
    /// For the mover of a stream, which moves its bytes outside the core.
    case stream(StreamID, StreamCommand)
    /// For the mover of a transfer, which moves its bytes outside the core.
    case transfer(ResourceID, TransferCommand)
    /// Write these behind all that was asked for before, and report those that the disk refuses; what comes before the disk has time for it may
    /// be written together.
    case keepTransfers([TransferChange])
    /// Sign each of these with this machine's key, and report them as signed.
    case sign(SignatureID, [[UInt8]])
    /// Check all signatures of each of these, and report for each whether they are valid.
    case check(SignatureID, [[ProofCheck]])
    /// Put these into the directory of received files, which an earlier run could not, once what that has left there half made is gone; report
    /// each as placed.
    case placeLeft([Resource])
}

/// Names a transaction for as long as it is under way: a counter.
package struct CommitID: Sendable, Hashable {
    package let number: UInt64
}

/// Names something that a peer is charged for: a counter.
package struct HoldID: Sendable, Hashable {
    package let number: UInt64
}

/// One change of what is kept; those given together are committed together.
package enum StoreOperation: Sendable, Hashable {
    case putPeer(StoredPeer)
    case removePeer(PeerID)
    /// In the place of any other with its peer. Fails where another peer has one of that id.
    case putSession(StoredSession)
    /// The session with that peer, where there is one, and the peer too where no person has decided about it.
    case removeSession(with: PeerID)
    case putResource(Resource)
    /// With its transfer.
    case removeResource(ResourceID)
    /// Of a resource that was put before.
    case putTransfer(StoredTransfer)
    case removeTransfer(ResourceID)
    case putEndedTransfer(EndedTransfer)
    /// With its records; what was put of it before stays.
    case putGroup(StoredGroup)
    /// With all its records.
    case removeGroup(GroupID)
    /// Of a group that was put before.
    case putGroupRecord(GroupRecord, of: GroupID)
    case removeGroupRecord(GroupRecordHash, of: GroupID)
}

/// Whether a peer that has spoken TLS is let in without it.
package enum TLSPin: Sendable, Hashable {
    /// The store has it of this peer: it is remembered however many strangers come.
    case keep
    /// The store has it no longer: it is remembered as a stranger's.
    case release
    /// A person has reset it.
    case forget
}

/// What is to be done for a transfer's data connection.
package enum DataPathEffect: Sendable, Hashable {
    /// Let the peer dial with this token, over what carries its control connection; report it as attached.
    case expect(DataToken, from: PeerID, over: LinkID, attempt: UInt64)
    /// Dial the peer with the token that it has given.
    case dial(DataToken, PeerID, over: LinkID, attempt: UInt64)
    /// Let no peer dial for it any more.
    case revoke
    /// What has just been reported as attached is the transfer's data connection from now on.
    case use(attempt: UInt64)
    /// There will be none.
    case doWithout(attempt: UInt64)
    /// What has just been reported as attached comes too late, or is one too many.
    case drop
    /// The attempt is over, and the connection that it came to is not needed any more.
    case close(attempt: UInt64)
}
