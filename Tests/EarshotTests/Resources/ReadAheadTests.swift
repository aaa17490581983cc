import DequeModule
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import Earshot

/// The lead of the thread that reads a data connection's socket over the thread that writes to the disk.
@Suite(.timeLimit(.minutes(1))) struct ReadAheadTests {
    /// Sends whole blocks, one per frame, until the other end has gone, and counts the bytes.
    private static func feed(_ descriptor: CInt, _ blocks: Int, _ sent: Box<Int>) {
        Thread.detachNewThread {
            var frame = ByteBuffer()
            DataFrame.data(count: EarshotLimits.readAheadBlock).encode(into: &frame)
            frame.writeRepeatingByte(7, count: EarshotLimits.readAheadBlock)
            let bytes = Array(frame.readableBytesView)
            for _ in 0..<blocks {
                var at = 0
                while at < bytes.count {
                    // In small pieces, because the progress of a blocked call is not known.
                    let count = bytes[at...].withUnsafeBytes { send(descriptor, $0.baseAddress, min($0.count, 4096), Int32(MSG_NOSIGNAL)) }
                    guard count > 0 else { return }
                    at += count
                    sent.withLock { $0 += count }
                }
            }
        }
    }

    @Test func readingStopsWhenAllBlocksAreFull() throws {
        var pair: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let (reading, writing) = (pair[0], pair[1])
        defer { close(writing) }
        var decoder = DataFrameDecoder()
        decoder.feed(ByteBuffer())
        let reader = DataSocketReader(socket: DataSocket(descriptor: reading), decoder: decoder, pieces: [], end: nil)
        let sent = Box(0)
        Self.feed(writing, 3 * ReadAhead.blocks, sent)
        // Returns the bytes that the reading thread has taken from the socket: the sent bytes without those in the socket.
        func taken() -> Int {
            let before = sent.value
            var waiting: CInt = 0
            guard ioctl(reading, UInt(FIONREAD), &waiting) == 0, sent.value == before else { return 0 }
            return before - Int(waiting)
        }
        let whole = ReadAhead.blocks * (EarshotLimits.readAheadBlock + WireLimits.frameHeaderLength)
        var most = 0
        let deadline = ContinuousClock.now + .seconds(30)
        #expect(throws: EarshotError.self) {
            try ReadAhead.read(reader) { block throws(EarshotError) in
                // The thread reads until all its blocks are full, one of which is held here, and no further.
                while most < whole, ContinuousClock.now < deadline { most = max(most, taken()) }
                for _ in 0..<1000 { most = max(most, taken()) }
                throw EarshotError(.cancelled, "enough")
            }
        }
        #expect(most == whole)
    }

    /// Returns the two ends of a TCP connection on this machine.
    private static func connected() throws -> (reading: CInt, writing: CInt) {
        let kind = Int32(SOCK_STREAM.rawValue)
        let listener = socket(AF_INET, kind, 0)
        defer { close(listener) }
        var name = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        try #require(SocketAddress(ipAddress: "127.0.0.1", port: 0).withSockAddr { bind(listener, $0, socklen_t($1)) } == 0)
        try #require(listen(listener, 1) == 0)
        let port = withUnsafeMutableBytes(of: &name) { bytes -> Int in
            guard let base = bytes.baseAddress else { return 0 }
            guard getsockname(listener, base.assumingMemoryBound(to: sockaddr.self), &length) == 0 else { return 0 }
            return Int(bytes[2]) << 8 | Int(bytes[3])
        }
        let writing = socket(AF_INET, kind, 0)
        try #require(SocketAddress(ipAddress: "127.0.0.1", port: port).withSockAddr { connect(writing, $0, socklen_t($1)) } == 0)
        let reading = accept(listener, nil, nil)
        try #require(reading >= 0)
        return (reading, writing)
    }

    /// The kernel wakes up the reading thread for `EarshotLimits.dataWake` bytes, or for fewer if the frame has fewer left, so the thread
    /// never waits for bytes that are not due. Each frame is sent when the previous one has been taken.
    @Test func everyFrameArrivesAlone() throws {
        let (reading, writing) = try Self.connected()
        defer { close(writing) }
        let wake = EarshotLimits.dataWake
        let block = EarshotLimits.readAheadBlock
        let counts = [1, wake - 1, wake, wake + 1, 1, 2 * wake, 2, block - 1, block, 1]
        func send(_ frame: DataFrame, _ count: Int) {
            var bytes = ByteBuffer()
            frame.encode(into: &bytes)
            bytes.writeRepeatingByte(7, count: count)
            let whole = Array(bytes.readableBytesView)
            Thread.detachNewThread {
                var at = 0
                while at < whole.count {
                    let sent = whole[at...].withUnsafeBytes { Glibc.send(writing, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                    guard sent > 0 else { return }
                    at += sent
                }
            }
        }
        let reader = DataSocketReader(socket: DataSocket(descriptor: reading), decoder: DataFrameDecoder(), pieces: [], end: nil)
        var frame = 0
        var taken = 0
        send(.data(count: counts[0]), counts[0])
        try ReadAhead.read(reader) { bytes throws(EarshotError) in
            taken += bytes.count
            guard taken == counts[frame] else { return }
            frame += 1
            taken = 0
            // Also the last frame, with nothing after it: no shutdown wakes up the thread.
            if frame < counts.count { send(.data(count: counts[frame]), counts[frame]) } else { send(.end, 0) }
        }
        #expect(frame == counts.count)
    }
}
