import EarshotWire
import NIOCore

/// The frames of a data connection: the first byte says how the rest is cut into buffers.
///
/// However it is cut, the same bytes come out, as many as were announced and no more, and nothing comes behind the end.
enum DataHarness: Harness {
    static func run(_ input: [UInt8]) {
        guard let first = input.first else { return }
        let bytes = Array(input.dropFirst())
        let size = max(1, Int(first))
        let whole = self.decode([bytes])
        let cut = self.decode(stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) })
        demand(cut.bytes == whole.bytes, "the same bytes, however they are cut")
        demand(cut.isWrong == whole.isWrong, "wrong, however it is cut")
        demand(whole.bytes.count + WireLimits.frameHeaderLength <= max(bytes.count, WireLimits.frameHeaderLength), "no byte is made up")
    }

    private static func decode(_ pieces: [[UInt8]]) -> (bytes: [UInt8], isWrong: Bool) {
        var decoder = DataFrameDecoder()
        var bytes: [UInt8] = []
        var hasEnded = false
        for piece in pieces {
            decoder.feed(ByteBuffer(bytes: piece))
            do throws(WireError) {
                while let next = try decoder.next() {
                    demand(!hasEnded, "nothing comes behind the end")
                    switch next {
                    case .bytes(let buffer): bytes += Array(buffer.readableBytesView)
                    case .end: hasEnded = true
                    }
                }
            } catch {
                return (bytes, true)
            }
        }
        return (bytes, false)
    }
}
