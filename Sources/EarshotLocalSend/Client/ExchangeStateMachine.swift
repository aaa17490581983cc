import Earshot
import EarshotCore
import NIOCore
import NIOHTTP1

/// The answer of a device.
struct ExchangeAnswer: Sendable, Hashable {
    let status: UInt16
    let body: ByteBuffer
}

/// One request to a device and its answer, on a connection of their own. ``ExchangeHandler`` performs the actions.
///
/// A connection that is lost before the request's body has begun has changed nothing at the device. After that, the outcome is unknown.
/// The device may answer before it has read the whole request, for example if its user declines. The rest is then not sent.
struct ExchangeStateMachine {
    private enum State {
        case connecting
        /// The handshake is complete, and nothing of the body has been sent.
        case open(Receipt)
        /// The body has begun.
        case sending(Receipt)
        /// The whole request has been sent.
        case sent(Receipt)
        case over
    }

    /// The part of the answer that has arrived.
    private struct Receipt {
        var head: HTTPResponseHead?
        var body = ByteBuffer()
    }

    private var state = State.connecting

    enum Action: Equatable {
        case none
        /// The request can be sent.
        case ready
        /// The answer is complete. Close the connection.
        case finish(ExchangeAnswer)
        /// The exchange has failed. Close the connection.
        case fail(DeviceFailure)
    }

    /// TLS has proven the device.
    mutating func shookHands() -> Action {
        switch self.state {
        case .connecting:
            self.state = .open(Receipt())
            return .ready
        case .open, .sending, .sent, .over: return .none
        }
    }

    /// The first byte of the request's body is about to be sent.
    mutating func beganBody() {
        switch self.state {
        case .open(let receipt): self.state = .sending(receipt)
        case .connecting, .sending, .sent, .over: break
        }
    }

    /// The last byte of the request has been sent.
    mutating func endedBody() {
        switch self.state {
        case .open(let receipt), .sending(let receipt): self.state = .sent(receipt)
        case .connecting, .sent, .over: break
        }
    }

    /// A part of the answer arrives.
    mutating func received(_ part: HTTPClientResponsePart) -> Action {
        // Each branch gives up the state first, so that the buffer of the answer's body is changed in place.
        let before = self.state
        self.state = .over
        switch before {
        case .connecting:
            self.state = .connecting
            return .none
        case .over: return .none
        case .open(var receipt):
            let action = Self.take(part, &receipt, isSent: false)
            if action == .none { self.state = .open(receipt) }
            return action
        case .sending(var receipt):
            let action = Self.take(part, &receipt, isSent: false)
            if action == .none { self.state = .sending(receipt) }
            return action
        case .sent(var receipt):
            let action = Self.take(part, &receipt, isSent: true)
            if action == .none { self.state = .sent(receipt) }
            return action
        }
    }

    private static func take(_ part: HTTPClientResponsePart, _ receipt: inout Receipt, isSent: Bool) -> Action {
        switch part {
        case .head(let head):
            receipt.head = head
            return .none
        case .body(let bytes):
            receipt.body.writeImmutableBuffer(bytes)
            return .none
        case .end:
            guard let head = receipt.head, let status = UInt16(exactly: head.status.code) else {
                return .fail(.invalid("the answer has no status"))
            }
            // A device can refuse a request before its end, and not fulfil it.
            guard isSent || !(200..<300).contains(status) else { return .fail(.invalid("the device answered before the request's end")) }
            return .finish(ExchangeAnswer(status: status, body: receipt.body))
        }
    }

    /// The answer is not HTTP, or too long.
    mutating func failed(_ reason: String) -> Action {
        switch self.state {
        case .connecting, .open, .sending, .sent:
            self.state = .over
            return .fail(.invalid(reason))
        case .over: return .none
        }
    }

    /// The connection is lost, or a time limit is over.
    mutating func ended(_ reason: String) -> Action {
        defer { self.state = .over }
        switch self.state {
        case .connecting, .open: return .fail(.unreachable(reason))
        case .sending, .sent: return .fail(.lost(reason))
        case .over: return .none
        }
    }
}
