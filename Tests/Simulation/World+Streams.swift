import EarshotCore
import EarshotWire

/// Streams, which no action opens yet.
extension World {
    mutating func carryOut(_ command: StreamCommand, _ stream: StreamID, on machine: Int) {}
    mutating func check(_ command: StreamCommand, for stream: StreamID, of machine: Int, _ effect: Effect, _ input: Input) {}
    mutating func note(_ stream: ByteStream, at machine: Int) {}
    mutating func check(_ answer: Answer, to request: StreamRequest, of machine: Int) {}
}
