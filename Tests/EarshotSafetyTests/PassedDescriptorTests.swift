import EarshotSafety
import Foundation
import Testing

/// Descriptors that another process may share: which of them carry streams, and the end of a wait for one.
@Suite(.timeLimit(.minutes(1))) struct PassedDescriptorTests {
    private static func pipe() throws -> (input: OpenFile, output: OpenFile) {
        var ends: [CInt] = [-1, -1]
        try #require(Glibc.pipe(&ends) == 0)
        return (OpenFile(descriptor: ends[1], subject: "input"), OpenFile(descriptor: ends[0], subject: "output"))
    }

    @Test func pipesAndFilesCarryStreams() throws {
        let (input, output) = try Self.pipe()
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/etc/passwd"))
        let null = OpenFile(descriptor: open("/dev/null", O_RDWR | O_CLOEXEC), subject: "null")
        for descriptor in [input.descriptor, output.descriptor, file.fileDescriptor, null.descriptor] {
            #expect(PassedDescriptor.canCarryStream(descriptor))
        }
    }

    @Test func nothingElseCarriesStreams() throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let sockets = ends.map { OpenFile(descriptor: $0, subject: "socket") }
        // The second is a terminal.
        let paths = ["/tmp", "/dev/ptmx", "/dev/zero", "/dev/full"]
        let files = paths.map { (path: String) in OpenFile(descriptor: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), subject: path) }
        for file in sockets + files {
            try #require(file.descriptor >= 0)
            #expect(!PassedDescriptor.canCarryStream(file.descriptor), "\(file.subject)")
        }
        #expect(!PassedDescriptor.canCarryStream(-1))
    }

    /// The interrupt comes during the wait, or before it.
    @Test(arguments: [false, true]) func aWaitEndsWithTheInterrupt(isEarly: Bool) async throws {
        let (input, output) = try Self.pipe()
        let passed = try PassedDescriptor(output)
        if isEarly { passed.interrupt() }
        async let hasBytes = withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: passed.waitForBytes()) }
        }
        if !isEarly { passed.interrupt() }
        #expect(await !hasBytes)
        #expect(fcntl(input.descriptor, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test func aReadyPipeEndsTheWait() throws {
        let (input, output) = try Self.pipe()
        #expect(try PassedDescriptor(input).waitForRoom())
        try #require(write(input.descriptor, "x", 1) == 1)
        #expect(try PassedDescriptor(output).waitForBytes())
    }

    /// The pipe is full, and blocks everyone else who writes to it.
    @Test func bytesForAFullPipeWaitInTheCallerOnly() throws {
        let (input, output) = try Self.pipe()
        let pipe = try BytePipe()
        let bytes = [UInt8](repeating: 7, count: 256 * 1024)
        #expect(bytes.withUnsafeBytes { pipe.fill(with: $0) })
        var waits = 0
        let code = pipe.drain(all: bytes.count, to: input.descriptor) { _ in
            waits += 1
            return false
        }
        #expect(code == ECANCELED && waits == 1)
        var count: CInt = 0
        #expect(ioctl(output.descriptor, UInt(FIONREAD), &count) == 0 && count > 0 && count < bytes.count)
        var rest = [UInt8](repeating: 0, count: bytes.count - Int(count))
        #expect(rest.withUnsafeMutableBytes { pipe.drain(into: $0) })
        #expect(rest.allSatisfy { $0 == 7 })
    }
}
