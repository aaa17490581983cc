package import NIOCore

/// Encodes frames. A field over its limit throws and leaves the buffer unchanged.
package enum FrameEncoder {
    /// Appends the whole frame, header included, to `buffer`.
    package static func encode(_ frame: Frame, into buffer: inout ByteBuffer) throws(WireError) {
        if let bulk = try self.encodeHead(frame, into: &buffer) {
            buffer.writeImmutableBuffer(bulk)
        }
    }

    /// Appends the frame without the bytes of a message's body or a chunk's or a stream's data, and returns those; `nil` if the frame has
    /// none. Written to the channel right after `buffer`, they need not be copied.
    package static func encodeHead(_ frame: Frame, into buffer: inout ByteBuffer) throws(WireError) -> ByteBuffer? {
        let start = buffer.writerIndex
        let type = frame.type
        var writer = PayloadWriter(type, into: buffer)
        // The writer must hold the only reference while it writes, and none afterwards: a second reference would make the buffer be copied.
        buffer = ByteBuffer()
        let bulk: ByteBuffer?
        do throws(WireError) {
            writer.integer(UInt32(0))
            writer.integer(type.rawValue)
            bulk = try self.fields(of: frame, into: &writer)
            writer.giveBack(&buffer)
        } catch {
            writer.giveBack(&buffer)
            buffer.moveWriterIndex(to: start)
            throw error
        }
        let payload = buffer.writerIndex - start - WireLimits.frameHeaderLength + (bulk?.readableBytes ?? 0)
        guard payload <= type.payloadLimit, let length = UInt32(exactly: payload) else {
            buffer.moveWriterIndex(to: start)
            throw .malformed(type, field: "end")
        }
        buffer.setInteger(length, at: start)
        return bulk
    }

    /// Returns the payload of a hello, which the transcript binds.
    package static func payload(of hello: Hello) throws(WireError) -> [UInt8] {
        var buffer = ByteBuffer()
        try self.encode(.hello(hello), into: &buffer)
        return Array(buffer.readableBytesView.dropFirst(WireLimits.frameHeaderLength))
    }

    private static func fields(of frame: Frame, into writer: inout PayloadWriter) throws(WireError) -> ByteBuffer? {
        switch frame {
        case .hello(let hello): try self.hello(hello, into: &writer)
        case .proof(let proof): try writer.bytes("signature", proof.signature, in: 1...WireLimits.signature)
        case .refusal(let refusal): try refusal.write(into: &writer)
        case .ping(let value), .pong(let value): writer.integer(value)
        case .goodbye: break
        case .invite(let invite):
            writer.identifier(invite.id)
            try writer.integer("timeout", invite.timeoutMilliseconds, in: 1...WireLimits.invitationTimeoutMilliseconds)
            try writer.bytes("context", invite.context, in: 0...WireLimits.invitationContext)
        case .group(let frame): try frame.write(into: &writer)
        case .inviteAnswer(let answer): self.inviteAnswer(answer, into: &writer)
        case .inviteWithdraw(let withdraw):
            writer.identifier(withdraw.id)
            writer.integer(withdraw.reason.rawValue)
        case .sessionResume(let id), .sessionEnd(let id): writer.identifier(id)
        case .message(let message): return try self.message(message, into: &writer)
        case .messageReceipts(let receipts):
            try writer.length("receipts", receipts.count, as: UInt16.self, in: 1...WireLimits.receiptsPerFrame)
            for receipt in receipts {
                writer.identifier(receipt.id)
                writer.integer(receipt.outcome.rawValue)
            }
        case .resource(let frame): return try frame.write(into: &writer)
        case .stream(let frame): return try frame.write(into: &writer)
        case .dataTicket(let ticket):
            writer.identifier(ticket.transfer)
            try writer.bytes("token", ticket.token.bytes, count: WireLimits.dataToken)
        case .dataUnavailable(let transfer): writer.identifier(transfer)
        case .dataAttach(let token): try writer.bytes("token", token.bytes, count: WireLimits.dataToken)
        case .verification(let frame): try self.verification(frame, into: &writer)
        }
        return nil
    }

    private static func hello(_ hello: Hello, into writer: inout PayloadWriter) throws(WireError) {
        try writer.integer("versions", hello.versions.lowerBound, in: 1...UInt8.max)
        writer.integer(hello.versions.upperBound)
        try writer.bytes("public_key", hello.publicKey, in: 1...WireLimits.publicKey)
        writer.integer(hello.signatureScheme.rawValue)
        try writer.bytes("nonce", hello.nonce, count: WireLimits.nonceLength)
        try writer.text("service_type", hello.serviceType.description, as: UInt8.self, in: 1...ServiceType.lengthLimit)
        try writer.text("display_name", hello.displayName.description, as: UInt8.self, in: 1...DisplayName.byteLimit)
        writer.integer(hello.encryption.wireValue)
        try writer.length("extensions", hello.extensions.count, as: UInt16.self, in: 0...WireLimits.helloExtensions)
        for element in hello.extensions {
            writer.integer(element.type)
            try writer.bytes("extensions", element.data, in: 0...WireLimits.helloPayload)
        }
    }

    private static func verification(_ frame: VerificationFrame, into writer: inout PayloadWriter) throws(WireError) {
        writer.identifier(frame.id)
        switch frame.part {
        case .begin(let commitment): try writer.bytes("commitment", commitment, count: WireLimits.verificationPart)
        case .answer(let nonce), .reveal(let nonce): try writer.bytes("nonce", nonce, count: WireLimits.verificationPart)
        case .end(let reason): writer.integer(reason.rawValue)
        }
    }

    private static func inviteAnswer(_ answer: InviteAnswer, into writer: inout PayloadWriter) {
        writer.identifier(answer.id)
        switch answer.decision {
        case .accepted(let session):
            writer.integer(UInt8(1))
            writer.identifier(session)
        case .declined: writer.integer(UInt8(2))
        case .busy: writer.integer(UInt8(3))
        }
    }

    private static func message(_ message: MessageFrame, into writer: inout PayloadWriter) throws(WireError) -> ByteBuffer {
        guard MessageFrame.isContentType(message.contentType) else { throw writer.malformed("content_type") }
        writer.identifier(message.session)
        writer.identifier(message.id)
        writer.integer(message.mode.rawValue | (message.inReplyTo == nil ? 0 : MessageFrame.replyFlag))
        writer.integer(message.sequence)
        writer.integer(message.sentAtMilliseconds)
        if let inReplyTo = message.inReplyTo { writer.identifier(inReplyTo) }
        try writer.text("content_type", message.contentType, as: UInt8.self, in: 1...WireLimits.contentType)
        try writer.length("body", message.body.readableBytes, as: UInt32.self, in: 0...WireLimits.messageBody)
        return message.body
    }
}

extension Refusal {
    func write(into writer: inout PayloadWriter) throws(WireError) {
        writer.integer(self.code.rawValue)
        try writer.text("explanation", self.explanation, as: UInt16.self, in: 0...WireLimits.explanation)
    }
}
