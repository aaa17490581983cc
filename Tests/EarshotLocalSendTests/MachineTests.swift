import EarshotCore
import NIOCore
import NIOHTTP1
import Testing

@testable import Earshot
@testable import EarshotLocalSend

@Suite struct RequestStateMachineTests {
    @Test func `requests follow each other`() {
        var machine = RequestStateMachine()
        for _ in 0..<2 {
            #expect(machine.receivedHead(isLast: false) == .begin)
            #expect(machine.receivedBody() == .pass)
            #expect(machine.receivedEnd() == .pass)
            #expect(machine.answered() == .write(closes: false))
        }
        #expect(!machine.isServing)
    }

    @Test func `an early answer is the last one`() {
        var machine = RequestStateMachine()
        #expect(machine.receivedHead(isLast: false) == .begin)
        #expect(machine.answered() == .write(closes: true))
        #expect(machine.receivedBody() == .drop)
        #expect(machine.receivedEnd() == .drop)
        #expect(machine.receivedHead(isLast: false) == .drop)
        #expect(machine.answered() == .drop)
        #expect(machine.parserFailed() == .drop)
    }

    @Test func `the answer to the last request closes`() {
        var machine = RequestStateMachine()
        #expect(machine.receivedHead(isLast: true) == .begin)
        #expect(machine.receivedEnd() == .pass)
        #expect(machine.answered() == .write(closes: true))
    }

    @Test func `a request before the answer closes the connection`() {
        var machine = RequestStateMachine()
        #expect(machine.receivedHead(isLast: false) == .begin)
        #expect(machine.receivedEnd() == .pass)
        #expect(machine.receivedHead(isLast: false) == .close)
        #expect(machine.answered() == .drop)
    }

    @Test func `a parser's error is answered between requests only`() {
        var machine = RequestStateMachine()
        #expect(machine.parserFailed() == .refuse)
        #expect(machine.parserFailed() == .drop)
        machine = RequestStateMachine()
        #expect(machine.receivedHead(isLast: false) == .begin)
        #expect(machine.parserFailed() == .close)
        #expect(machine.receivedBody() == .drop)
    }

    @Test func `nothing happens after the end`() {
        var machine = RequestStateMachine()
        machine.ended()
        #expect(machine.receivedHead(isLast: false) == .drop)
        #expect(machine.receivedBody() == .drop)
        #expect(machine.receivedEnd() == .drop)
        #expect(machine.answered() == .drop)
        #expect(machine.parserFailed() == .drop)
    }
}

@Suite struct ConnectionPlacesTests {
    @Test func `an address has 8 places, and its oldest unused connection makes room`() {
        var places = ConnectionPlaces()
        for id in 0..<UInt64(LocalSendLimits.connectionsPerAddress) { #expect(places.admit(id, from: [1]) == .admitted(closing: nil)) }
        places.use(0, true)
        #expect(places.admit(100, from: [1]) == .admitted(closing: 1))
        #expect(places.admit(101, from: [2]) == .admitted(closing: nil))
        #expect(places.count == LocalSendLimits.connectionsPerAddress + 1)
    }

    @Test func `connections with requests keep their places`() {
        var places = ConnectionPlaces()
        for id in 0..<UInt64(LocalSendLimits.connectionsPerAddress) {
            #expect(places.admit(id, from: [1]) == .admitted(closing: nil))
            places.use(id, true)
        }
        #expect(places.admit(100, from: [1]) == .refused)
        places.use(3, false)
        #expect(places.admit(100, from: [1]) == .admitted(closing: 3))
        places.remove(100)
        #expect(places.admit(101, from: [1]) == .admitted(closing: nil))
    }

    @Test func `there are 48 places in all`() {
        var places = ConnectionPlaces()
        for id in 0..<UInt64(LocalSendLimits.connections) {
            #expect(places.admit(id, from: [UInt8(id)]) == .admitted(closing: nil))
            if id > 0 { places.use(id, true) }
        }
        #expect(places.admit(100, from: [200]) == .admitted(closing: 0))
        places.use(100, true)
        #expect(places.admit(101, from: [201]) == .refused)
        #expect(places.count == LocalSendLimits.connections)
    }
}

@Suite struct ExchangeStateMachineTests {
    private let head = HTTPClientResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok))

    @Test func `an answer is collected`() {
        var machine = ExchangeStateMachine()
        #expect(machine.shookHands() == .ready)
        machine.beganBody()
        machine.endedBody()
        #expect(machine.received(self.head) == .none)
        #expect(machine.received(.body(ByteBuffer(string: "a"))) == .none)
        #expect(machine.received(.body(ByteBuffer(string: "b"))) == .none)
        #expect(machine.received(.end(nil)) == .finish(ExchangeAnswer(status: 200, body: ByteBuffer(string: "ab"))))
        #expect(machine.ended("lost") == .none)
    }

    @Test func `a lost connection is unreachable until the body begins`() {
        var machine = ExchangeStateMachine()
        #expect(machine.ended("x") == .fail(.unreachable("x")))
        machine = ExchangeStateMachine()
        #expect(machine.shookHands() == .ready)
        #expect(machine.ended("x") == .fail(.unreachable("x")))
        machine = ExchangeStateMachine()
        #expect(machine.shookHands() == .ready)
        machine.beganBody()
        #expect(machine.received(self.head) == .none)
        #expect(machine.ended("x") == .fail(.lost("x")))
        #expect(machine.ended("x") == .none)
        #expect(machine.failed("the answer is not HTTP") == .none)
        #expect(machine.received(.end(nil)) == .none)
    }

    @Test func `a device can refuse before the request's end, and not confirm`() {
        for status in [HTTPResponseStatus.ok, .noContent, .forbidden] {
            var machine = ExchangeStateMachine()
            #expect(machine.shookHands() == .ready)
            machine.beganBody()
            #expect(machine.received(.head(HTTPResponseHead(version: .http1_1, status: status))) == .none)
            let action = machine.received(.end(nil))
            if status == .forbidden {
                #expect(action == .finish(ExchangeAnswer(status: 403, body: ByteBuffer())))
            } else {
                #expect(action == .fail(.invalid("the device answered before the request's end")))
            }
        }
    }
}

@Suite struct DatagramRateTests {
    private let start = NIODeadline.uptimeNanoseconds(5_000_000_000)

    @Test func `an address has 10 datagrams a second`() {
        var rate = DatagramRate()
        for _ in 0..<LocalSendLimits.datagramsPerSecondAndAddress { #expect(rate.admit(from: [1], at: self.start) == true) }
        #expect(rate.admit(from: [1], at: self.start + .milliseconds(999)) == false)
        #expect(rate.admit(from: [2], at: self.start + .milliseconds(999)) == true)
        #expect(rate.admit(from: [1], at: self.start + .seconds(1)) == true)
    }

    @Test func `there are 100 datagrams a second in all`() {
        var rate = DatagramRate()
        for number in 0..<LocalSendLimits.datagramsPerSecond { #expect(rate.admit(from: [UInt8(number)], at: self.start) == true) }
        #expect(rate.admit(from: [250], at: self.start) == false)
        #expect(rate.admit(from: [250], at: self.start + .seconds(1)) == true)
    }
}
