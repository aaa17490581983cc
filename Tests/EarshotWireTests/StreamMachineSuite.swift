import EarshotWire
import NIOCore
import Testing

/// The shared parts of the suites about streams: a machine, the frames of one stream, and the expected actions.
protocol StreamMachineSuite {
    var machine: ConnectionStateMachine { get set }
}

extension StreamMachineSuite {
    static var newMachine: ConnectionStateMachine {
        ConnectionStateMachine(localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2]))
    }

    var id: StreamID { Fixtures.stream }

    func open(_ id: StreamID? = nil) throws -> Frame {
        .stream(.open(StreamOpen(session: Fixtures.session, id: id ?? self.id, name: try StreamName("backup"))))
    }
    func accept(_ limit: UInt64) -> Frame { .stream(.accept(StreamAccept(id: self.id, limit: limit))) }
    func data(_ count: Int) -> Frame { .stream(.data(StreamData(id: self.id, data: ByteBuffer(repeating: 1, count: count)))) }
    func end(_ size: UInt64) -> Frame { .stream(.end(StreamEnd(id: self.id, size: size))) }
    var done: Frame { .stream(.done(self.id)) }
    var refuse: Frame { .stream(.refuse(StreamRefuse(id: self.id, refusal: Refusal(code: .busy)))) }
    var abort: Frame { .stream(.abort(StreamRefuse(id: self.id, refusal: Refusal(code: .cancelled)))) }

    mutating func receive(_ frame: Frame, _ action: ConnectionStateMachine.ReceivedAction = .deliver) {
        #expect(self.machine.received(frame) == action, "\(frame.type)")
    }

    mutating func violates(_ frame: Frame) {
        guard case .violation(let error) = self.machine.received(frame) else {
            Issue.record("a \(frame.type) was taken")
            return
        }
        #expect(error.code == .protocolViolation)
    }

    mutating func send(_ frame: Frame, _ action: ConnectionStateMachine.SentAction = .send) {
        #expect(self.machine.sent(frame) == action, "\(frame.type)")
    }
}
