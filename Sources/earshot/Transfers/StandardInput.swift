import Dispatch
import EarshotControl
import EarshotSafety
import Glibc
import NIOCore

/// Standard input as it comes: each read hands on what there is, so that the first byte waits for no other.
enum StandardInput {
    /// How much is read at once, in bytes.
    private static let pieceSize = 256 * 1024

    /// Reading blocks, and must not hold up what runs beside it.
    private static let queue = DispatchQueue(label: "standard input")

    /// The bytes to the end of standard input; read once.
    static func bytes() -> AsyncStreamOfBytes {
        StandardPipe.enlarge(STDIN_FILENO)
        return AsyncStreamOfBytes {
            try await withCheckedThrowingContinuation { continuation in
                Self.queue.async { continuation.resume(with: Self.read()) }
            }
        }
    }

    private static func read() -> Result<ByteBuffer?, any Error> {
        do {
            return .success(try Standard.read(limit: Self.pieceSize))
        } catch {
            return .failure(ControlError.source(error.description))
        }
    }
}

/// The pipes that connect this process with its neighbours.
enum StandardPipe {
    /// What a pipe may hold, in bytes: as much as the kernel gives to anybody.
    private static let capacity: CInt = 1024 * 1024

    /// fcntl(2)'s F_SETPIPE_SZ, which the library's Swift overlay leaves out.
    private static let setPipeSize: CInt = 1031

    /// Lets a pipe hold more than the usual 64 KiB, so that both ends switch less often; nothing where it is no pipe.
    static func enlarge(_ descriptor: CInt) {
        _ = fcntl(descriptor, Self.setPipeSize, Self.capacity)
    }
}
