import DequeModule
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import Earshot

/// How far the thread that reads a data connection's socket is ahead of the one that writes to the disk.
@Suite(.timeLimit(.minutes(1))) struct ReadAheadTests {
    /// Sends so many whole blocks, a frame each, until the other end has gone; and counts the bytes.
    private static func feed(_ descriptor: CInt, _ blocks: Int, _ sent: Box<Int>) {
        Thread.detachNewThread {
            var frame = ByteBuffer()
            DataFrame.data(count: EarshotLimits.dataBlock).encode(into: &frame)
            frame.writeRepeatingByte(7, count: EarshotLimits.dataBlock)
            let bytes = Array(frame.readableBytesView)
            for _ in 0..<blocks {
                var at = 0
                while at < bytes.count {
                    // In small pieces: what a call that waits has sent already is not known.
                    let count = bytes[at...].withUnsafeBytes { send(descriptor, $0.baseAddress, min($0.count, 4096), Int32(MSG_NOSIGNAL)) }
                    guard count > 0 else { return }
                    at += count
                    sent.withLock { $0 += count }
                }
            }
        }
    }

    @Test func blocks() throws {
        var pair: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let (reading, writing) = (pair[0], pair[1])
        defer { close(writing) }
        var decoder = DataFrameDecoder()
        decoder.feed(ByteBuffer())
        let reader = DataSocketReader(socket: DataSocket(descriptor: reading), decoder: decoder, pieces: [], end: nil)
        let sent = Box(0)
        Self.feed(writing, 3 * ReadAhead.blocks, sent)
        // What the reading thread has taken from the socket: what was sent without what lies there.
        func taken() -> Int {
            let before = sent.value
            var waiting: CInt = 0
            guard ioctl(reading, UInt(FIONREAD), &waiting) == 0, sent.value == before else { return 0 }
            return before - Int(waiting)
        }
        let whole = ReadAhead.blocks * (EarshotLimits.dataBlock + WireLimits.frameHeaderLength)
        var most = 0
        let deadline = ContinuousClock.now + .seconds(30)
        #expect(throws: EarshotError.self) {
            try ReadAhead.read(reader) { block throws(EarshotError) in
                // It goes on until all its blocks are full, one of them being the one that is held here; and no further.
                while most < whole, ContinuousClock.now < deadline { most = max(most, taken()) }
                for _ in 0..<1000 { most = max(most, taken()) }
                throw EarshotError(.cancelled, "enough")
            }
        }
        #expect(most == whole)
    }
}
