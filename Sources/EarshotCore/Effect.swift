package import EarshotWire

/// An action that a ``NodeCore`` requests from its shell.
package enum Effect: Sendable, Equatable {
    /// Write frames on a control connection, if it is still open.
    case send(LinkID, [Frame])
    /// Close a control connection with a `goodbye`, or with a reason.
    case close(LinkID, Refusal?)
    /// Dial a peer. Report first that the dial has begun, or that there is nowhere to dial, and then the outcome.
    case dial(PeerID, DialPlan)
    /// Resolve the address of a configured peer, and dial it there.
    case dialConfigured(ConfiguredPeer)
    /// Write the operations in one transaction, after all earlier ones, and report the outcome.
    case commit(CommitID, [StoreOperation])
    /// Publish an event to event readers.
    case publish(CoreEvent)
    /// Answer a caller.
    case answer(CallID, Answer)
    /// Charge the peer of a control connection a number of bytes until `release`.
    case hold(HoldID, LinkID, bytes: Int)
    case release(HoldID)
    /// Update a peer's TLS pin for later handshakes.
    case pin(PeerID, TLSPin)
    /// Write to the log.
    case log(Notice)
    case dataPath(TransferID, DataPathEffect)
    /// Write unreliable messages on a control connection, at once.
    case sendUnreliable(LinkID, UnreliableMessages)
    /// Report `.flush` when the requests that callers have made by now have come in, so that their messages are sent together.
    case flushSoon(Conversation)
    /// Change the outbox on disk in one transaction, after all earlier changes, and report the outcome as `.kept`.
    case keep(KeepID, [OutboxChange])
    /// Deliver messages of a control connection's peer to the inbox, in their order, and charge the peer for them until that is done.
    /// Report the outcome as `.delivered`.
    case deliver(LinkID, [InboxMessage])
    /// Load the bodies of queued messages of one conversation.
    case loadBodies(Conversation, [MessageID])
    /// Load the ids of a peer's messages that were read here and that the peer has not noted.
    case loadReceipts(PeerID)
    /// A command for the mover of a stream, which moves the bytes outside the core.
    case stream(StreamID, StreamCommand)
    /// A command for the mover of a transfer, which moves the bytes outside the core.
    case transfer(ResourceID, TransferCommand)
    /// Write the changes after all earlier ones, and report those that the disk refuses. Changes that wait for the disk may be written
    /// together.
    case keepTransfers([TransferChange])
    /// Sign each input with this machine's key, and report the signatures as `.signed`.
    case sign(SignatureID, [[UInt8]])
    /// Check all signatures of each group of checks, and report for each group whether they are valid.
    case check(SignatureID, [[ProofCheck]])
    /// Move these resources to the directory of received files, which an earlier run failed to do. Partial files of that run are removed
    /// first. Report each resource as placed.
    case placeLeft([Resource])
    /// An action for LocalSend devices.
    case device(DeviceEffect)
}

/// The id of a pending transaction: a counter.
package struct CommitID: Sendable, Hashable {
    package let number: UInt64
}

/// The id of a charge to a peer: a counter.
package struct HoldID: Sendable, Hashable {
    package let number: UInt64
}

/// A change of the stored state. Changes passed together are committed together.
package enum StoreOperation: Sendable, Hashable {
    case putPeer(StoredPeer)
    case removePeer(PeerID)
    /// Replaces any other session with the peer. Fails if another peer has a session with that id.
    case putSession(StoredSession)
    /// Removes the session with that peer, if there is one. Also removes the peer if no user has decided about it.
    case removeSession(with: PeerID)
    case putResource(Resource)
    /// Removes the resource with its transfer.
    case removeResource(ResourceID)
    /// Stores the transfer of a resource that was stored before.
    case putTransfer(StoredTransfer)
    case removeTransfer(ResourceID)
    case putEndedTransfer(EndedTransfer)
    /// Stores the group with its records. Records that were stored before stay.
    case putGroup(StoredGroup)
    /// Removes the group with all its records.
    case removeGroup(GroupID)
    /// Stores a record of a group that was stored before.
    case putGroupRecord(GroupRecord, of: GroupID)
    case removeGroupRecord(GroupRecordHash, of: GroupID)
}

/// A change of the requirement that a peer that has used TLS must use it.
package enum TLSPin: Sendable, Hashable {
    /// The store has the peer's pin, which is kept regardless of the number of strangers.
    case keep
    /// The store no longer has the peer's pin, which is kept like a stranger's.
    case release
    /// A user has reset the pin.
    case forget
}

/// An action for a transfer's data connection.
package enum DataPathEffect: Sendable, Hashable {
    /// Let the peer dial with this token, over the transport of its control connection. Report its connection as attached.
    case expect(DataToken, from: PeerID, over: LinkID, attempt: UInt64)
    /// Dial the peer with the token that it has sent.
    case dial(DataToken, PeerID, over: LinkID, attempt: UInt64)
    /// Stop accepting a connection for this transfer.
    case revoke
    /// Use the connection that was just reported as attached for the transfer from now on.
    case use
    /// Drop the connection that was just reported as attached: it is late or redundant.
    case drop
    /// Close the transfer's connection, if there is one: it is no longer needed.
    case close
}
