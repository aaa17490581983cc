import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// The part of the quota that one peer's unfinished transfers may hold, and the part of an interrupted one.
@Suite(.timeLimit(.minutes(5))) struct SpoolShareTests {
    private static let block: UInt64 = 4096
    private let alice = PeerID(subjectPublicKeyInfo: [1])
    private let bob = PeerID(subjectPublicKeyInfo: [2])

    private func allowance(_ peer: PeerID, _ quota: UInt64, isTrusted: Bool = false) -> Spool.Allowance {
        Spool.Allowance(quota: quota, reserve: 0, share: QuotaShare(of: peer, isTrusted: isTrusted))
    }

    private func allocated(_ path: String) throws -> UInt64 { try #require(FileStatus(path: path)).allocated }

    private func refusal(_ body: () async throws -> Void) async -> EarshotError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? EarshotError
        }
    }

    /// At the limit, with the message. Another peer's content does not count.
    @Test(arguments: [false, true]) func aShareAtItsEdge(_ isTrusted: Bool) async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let quota = 16 * Self.block
        let limit = (isTrusted ? 12 : 4) * Self.block
        let allowance = self.allowance(self.alice, quota, isTrusted: isTrusted)
        let error = await self.refusal { _ = try await spool.begin(.random(), size: limit - Self.block + 1, allowance) }
        #expect(error?.code == .noSpace)
        #expect(error?.message.contains("\(isTrusted ? "three quarters" : "a quarter") of the quota, \(limit) bytes, and hold 0") == true)
        #expect(await self.refusal { try await spool.check(.random(), size: limit - Self.block + 1, allowance) }?.code == .noSpace)
        let whole = ResourceID.random()
        _ = try await spool.begin(whole, size: limit - Self.block, allowance)
        let second = await self.refusal { _ = try await spool.begin(.random(), size: 0, allowance) }
        #expect(second?.message.contains("and hold \(limit)") == true)
        let other = ResourceID.random()
        _ = try await spool.begin(other, size: 3 * Self.block, self.allowance(self.bob, quota))
        // Complete content counts for everyone, and no longer for its sender.
        await spool.abandon(whole)
        let small = ResourceID.random()
        _ = try await spool.begin(small, size: 1, allowance)
        try await spool.write(small, offset: 0, ByteBuffer(string: "x"))
        let hash = try XXH3()
        hash.update(ByteBuffer(string: "x"))
        _ = try await spool.finish(small, algorithm: .xxh3, digest: hash.digest())
        // Ten blocks of the quota are left, beside the other peer's four and the two of complete content.
        _ = try await spool.begin(.random(), size: min(limit, 10 * Self.block) - Self.block, allowance)
    }

    /// Offered with the full share, one byte sent, then disconnected: only the block of that byte is held, in the ledger and on the disk.
    @Test func whatIsPausedHoldsWhatHasCome() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let (id, size) = (ResourceID.random(), UInt64(4 << 20))
        let allowance = self.allowance(self.alice, 16 * 1024 * 1024 + 4 * Self.block)
        _ = try await spool.begin(id, size: size, allowance)
        try await spool.write(id, offset: 0, ByteBuffer(string: "x"))
        #expect(await spool.heldBytes() == size + Self.block)
        await spool.pause(id)
        #expect(await spool.heldBytes() == 2 * Self.block)
        let path = "\(directory.path)/spool/partial/\(id)"
        #expect(try self.allocated(path) <= Self.block)
        // The received byte still counts for its peer.
        let error = await self.refusal { _ = try await spool.begin(.random(), size: size - Self.block, allowance) }
        #expect(error?.message.contains("and hold \(2 * Self.block)") == true)
        // After a kill, the reserved space remains on the disk, and the next start releases it.
        _ = try await spool.resume(id, size: size, allowance)
        #expect(await spool.heldBytes() == size + Self.block)
        let isInMemory = try SafeDirectory(path: directory.path).isInMemory
        #expect(try self.allocated(path) >= size || isInMemory)
        let next = try Spool(directory: directory.path)
        #expect(await next.adopt([id: Spool.Left(size: size, peer: self.alice)]) == [id: 1])
        #expect(await next.heldBytes() == 2 * Self.block)
        #expect(try self.allocated(path) <= Self.block)
        let after = await self.refusal { _ = try await next.begin(.random(), size: size - Self.block, allowance) }
        #expect(after?.message.contains("and hold \(2 * Self.block)") == true)
        // After abandoning the transfer, nothing is held.
        await next.abandon(id)
        #expect(await next.heldBytes() == 0)
        _ = try await next.begin(.random(), size: size, allowance)
    }

    /// A thousand transfers that are paused, resumed and abandoned in turn leave an empty account.
    @Test func manyThatRest() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        var ids: [ResourceID] = []
        for number in 0..<200 {
            let id = ResourceID.random()
            let allowance = self.allowance(number % 2 == 0 ? self.alice : self.bob, 1 << 30)
            _ = try await spool.begin(id, size: 100_000, allowance)
            try await spool.write(id, offset: 0, ByteBuffer(repeating: 1, count: number % 3 * 4096 + 1))
            await spool.pause(id)
            if number % 5 == 0 { _ = try await spool.resume(id, size: 100_000, allowance) }
            ids.append(id)
        }
        var expected: UInt64 = 0
        for number in 0..<200 { expected += fileRoom(number % 5 == 0 ? 100_000 : UInt64(number % 3 * 4096 + 1)) }
        #expect(await spool.heldBytes() == expected)
        for id in ids { await spool.abandon(id) }
        #expect(await spool.heldBytes() == 0)
        let all = self.allowance(self.alice, 4 * fileRoom(1000))
        _ = try await spool.begin(.random(), size: 1000, all)
    }

    // MARK: Directories that take more than their declared size

    private static func tree(_ content: TreeEntry.Content) throws -> [UInt8] {
        var builder = TreeManifest.Builder()
        let time = TreeEntry.Time(seconds: 0, nanoseconds: 0)
        try builder.append(TreeEntry(parent: 0, name: [], mode: 0o700, modified: time, content: .directory), path: "")
        try builder.append(TreeEntry(parent: 0, name: [0x61], mode: 0o600, modified: time, content: content), path: "a")
        return try builder.finish().bytes
    }

    /// One byte in each block: 64 KiB of list and data that take 16 MiB.
    @Test func bytesInEachBlockAreRefusedByTheirBlocks() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let count: UInt64 = 4096
        let extents = TreeEntry.Extents((0..<count).map { TreeEntry.Extent(offset: $0 * 4096, length: 1) })
        let list = try Self.tree(.sparse(size: count * 4096, extents))
        let size = UInt64(list.count) + count
        let id = ResourceID.random()
        _ = try await spool.begin(id, kind: .directory, size: size, self.allowance(self.alice, 64 << 20))
        let error = await self.refusal { try await spool.write(id, offset: 0, ByteBuffer(bytes: list)) }
        #expect(error?.code == .noSpace && error?.message.contains("a quarter of the quota, \(16 << 20) bytes") == true)
        await spool.abandon(id)
        // With enough room, the directory is accepted, and takes no more than its reserved space.
        let next = ResourceID.random()
        _ = try await spool.begin(next, kind: .directory, size: size, self.allowance(self.alice, 68 << 20))
        try await spool.write(next, offset: 0, ByteBuffer(bytes: list))
        let held = await spool.heldBytes()
        #expect(held > 16 << 20 && held < 17 << 20)
        try await spool.write(next, offset: UInt64(list.count), ByteBuffer(repeating: 1, count: Int(count)))
        let file = try #require(FileStatus(path: "\(directory.path)/spool/partial/\(next)/tree/a"))
        #expect(file.allocated <= held && file.allocated >= 16 << 20)
        // Interrupted halfway, it would hold half of that.
        await spool.pause(next)
        #expect(await spool.heldBytes() <= held)
    }

    /// On its own disk, all lost space is within the reserved space.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func aDiskLosesNoMore() async throws {
        let disk = try SmallDisk(kilobytes: 64 * 1024)
        let spool = try Spool(directory: disk.path)
        let count: UInt64 = 4096
        let extents = TreeEntry.Extents((0..<count).map { TreeEntry.Extent(offset: $0 * 8192 + 4095, length: 2) })
        let list = try Self.tree(.sparse(size: count * 8192 + 8192, extents))
        let before = try SafeDirectory(path: disk.path).space().free
        let id = ResourceID.random()
        _ = try await spool.begin(
            id, kind: .directory, size: UInt64(list.count) + 2 * count, Spool.Allowance(quota: .max, reserve: 0))
        try await spool.write(id, offset: 0, ByteBuffer(bytes: list))
        try await spool.write(id, offset: UInt64(list.count), ByteBuffer(repeating: 1, count: 2 * Int(count)))
        let lost = before - (try SafeDirectory(path: disk.path).space().free)
        let held = await spool.heldBytes()
        #expect(lost >= 32 << 20 && lost <= held, "\(lost) of \(held)")
    }
}
