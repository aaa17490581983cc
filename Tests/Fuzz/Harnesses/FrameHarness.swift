import EarshotWire
import NIOCore

/// The frame decoder: the first byte says which limits hold and how the rest is cut into buffers.
///
/// However the bytes are cut, the same frames come out and the same error; encoding what came gives the bytes that went in; and no more
/// is ever held than was fed.
enum FrameHarness: Harness {
    private struct Outcome: Equatable {
        var frames: [Frame] = []
        var error: WireError?
    }

    static func run(_ input: [UInt8]) {
        guard let first = input.first else { return }
        let bytes = Array(input.dropFirst())
        let phase: FrameDecoder.Phase = first & 1 == 0 ? .proven : .unproven
        let whole = self.decode([bytes], phase, inRuns: true)
        let size = max(1, Int(first >> 1))
        let pieces = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
        let cut = self.decode(pieces, phase)
        demand(self.joined(cut.frames) == self.joined(whole.frames), "the same frames, however the bytes are cut")
        demand(cut.error == whole.error, "the same error, however the bytes are cut")
        self.checkEncoding(of: whole.frames, against: bytes)
    }

    /// With unreliable messages taken together where they follow each other, or all one by one.
    private static func decode(_ pieces: [[UInt8]], _ phase: FrameDecoder.Phase, inRuns: Bool = false) -> Outcome {
        var decoder = FrameDecoder()
        decoder.phase = phase
        var outcome = Outcome()
        var fed = 0
        for piece in pieces {
            decoder.feed(ByteBuffer(bytes: piece))
            fed += piece.count
            do throws(WireError) {
                while true {
                    let run = inRuns ? decoder.takeUnreliable() : []
                    outcome.frames += run.map(Frame.message)
                    guard run.isEmpty else { continue }
                    guard let frame = try decoder.next() else { break }
                    outcome.frames.append(frame)
                }
            } catch {
                outcome.error = error
                demand((try? decoder.next()) == nil, "nothing comes after an error")
                demand(!self.mayGoOn(&decoder), "an error stays")
                return outcome
            }
            demand(decoder.bufferedBytes <= fed, "no more is held than was fed")
        }
        return outcome
    }

    private static func mayGoOn(_ decoder: inout FrameDecoder) -> Bool {
        decoder.feed(ByteBuffer(bytes: [0, 0, 0, 0, 6]))
        return (try? decoder.next()) != nil
    }

    /// Data of a chunk may come in several pieces, which mean the same as one.
    private static func joined(_ frames: [Frame]) -> [Frame] {
        var joined: [Frame] = []
        for frame in frames {
            if case .resource(.chunk(var last))? = joined.last, case .resource(.chunk(let next)) = frame, last.id == next.id,
                last.offset + UInt64(last.data.readableBytes) == next.offset
            {
                last.data.writeImmutableBuffer(next.data)
                joined[joined.count - 1] = .resource(.chunk(last))
            } else if case .stream(.data(var last))? = joined.last, case .stream(.data(let next)) = frame, last.id == next.id {
                last.data.writeImmutableBuffer(next.data)
                joined[joined.count - 1] = .stream(.data(last))
            } else {
                joined.append(frame)
            }
        }
        return joined
    }

    /// Checks that the decoded frames encode to the input, except for skipped frames and a last chunk that is not complete.
    private static func checkEncoding(of frames: [Frame], against bytes: [UInt8]) {
        var rest = bytes[...]
        for (index, frame) in frames.enumerated() {
            rest = self.withoutSkippable(rest)
            var buffer = ByteBuffer()
            do throws(WireError) {
                try FrameEncoder.encode(frame, into: &buffer)
            } catch {
                demand(false, "what was decoded encodes: \(error)")
            }
            let encoded = Array(buffer.readableBytesView)
            if frame.type == .resourceChunk || frame.type == .streamData, index == frames.count - 1, !rest.starts(with: encoded) {
                // Only the lengths may differ, because the rest of the data has not arrived. The id is first, before a chunk's offset.
                let head = frame.type == .resourceChunk ? 29 : 21
                demand(rest.dropFirst(5).starts(with: encoded[5..<head]), "the head is the one that came")
                return
            }
            demand(rest.starts(with: encoded), "decoding and encoding is the identity")
            rest = rest.dropFirst(encoded.count)
        }
    }

    private static func withoutSkippable(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while rest.count >= 5, rest[rest.startIndex + 4] >= FrameType.firstSkippable {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(5 + length)
        }
        return rest
    }
}
