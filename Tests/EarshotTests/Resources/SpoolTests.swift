import Crypto
import Dispatch
@testable import Earshot
import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import Testing

@Suite struct SpoolTests {
    private static let mebibyte: UInt64 = 1 << 20

    private func spool(_ directory: StateDirectory) throws -> Spool {
        try Spool(directory: directory.path)
    }

    private func code(_ body: () async throws -> Void) async -> EarshotError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? EarshotError)?.code
        }
    }

    private static func xxh3(_ text: String) throws -> [UInt8] {
        let hash = try XXH3()
        hash.update(ByteBuffer(string: text))
        return hash.digest()
    }

    /// The published digests of xxHash's own sanity checks and of `xxhsum -H128`.
    @Test func xxh3IsTheRealOne() throws {
        #expect(try Self.xxh3("").hexadecimal == "99aa06d3014798d86001c324468d497f")
        #expect(try Self.xxh3("abc").hexadecimal == "06b05ab6733a618578af5f94892f3950")
        let hash = try XXH3()
        let long = String(repeating: "0123456789", count: 1000)
        for start in stride(from: 0, to: long.utf8.count, by: 777) {
            hash.update(ByteBuffer(bytes: Array(long.utf8)[start..<min(start + 777, long.utf8.count)]))
        }
        #expect(hash.digest().hexadecimal == "26b9e8677f17f17f2da683cfe7106d98")
        #expect(try hash.digest() == Self.xxh3(long))
    }

    @Test func aTransferFromBeginToRemove() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        #expect(try await spool.begin(id, size: 10) == 0)
        #expect(await spool.heldBytes() == fileRoom(10))
        #expect(await self.code { _ = try await spool.content(id) } == .notFound)
        #expect(try await spool.write(id, offset: 0, ByteBuffer(string: "01234")) == 5)
        #expect(try await spool.write(id, offset: 5, ByteBuffer()) == 5)
        #expect(try await spool.write(id, offset: 5, ByteBuffer(string: "56789")) == 10)
        let digest = try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("0123456789"))
        #expect(try digest == "xxh3:" + Self.xxh3("0123456789").hexadecimal)
        #expect(try directory.names("spool/partial") == [])
        #expect(try directory.names("spool/complete") == [id.description])
        #expect(try directory.mode("spool") == 0o700)
        #expect(try directory.mode("spool/complete/\(id)") == 0o600)
        #expect(try await spool.content(id).size == 10)
        #expect(try await spool.read(id, at: 0, count: 4) == ByteBuffer(string: "0123"))
        #expect(try await spool.read(id, at: 8, count: 99) == ByteBuffer(string: "89"))
        #expect(try await spool.read(id, at: 10, count: 1).readableBytes == 0)
        #expect(try await spool.read(id, at: 0, count: -1).readableBytes == 0)
        #expect(await self.code { _ = try await spool.read(id, at: .max, count: 1) } == .storage)
        #expect(await self.code { _ = try await spool.begin(id, size: 1) } == .conflict)
        try await spool.remove(id)
        try await spool.remove(id)
        #expect(await spool.heldBytes() == 0)
        #expect(await self.code { _ = try await spool.read(id, at: 0, count: 1) } == .notFound)
        #expect(await self.code { _ = try await spool.write(id, offset: 0, ByteBuffer()) } == .notFound)
        #expect(await self.code { _ = try await spool.finish(id, algorithm: .xxh3, digest: []) } == .notFound)
    }

    @Test func anEmptyFile() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        #expect(await self.code { _ = try await spool.begin(id, size: 0, quota: fileRoom(0) - 1) } == .noSpace)
        _ = try await spool.begin(id, size: 0, quota: fileRoom(0))
        #expect(await self.code { _ = try await spool.write(id, offset: 0, ByteBuffer(string: "x")) } == .tooLarge)
        #expect(try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("")).hasPrefix("xxh3:99aa06d3"))
        #expect(try await spool.content(id).size == 0)
        #expect(try await spool.read(id, at: 0, count: 10).readableBytes == 0)
    }

    @Test func contentIsVerifiedBySHA256() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        let content = [UInt8](repeating: 7, count: 600_000)
        _ = try await spool.begin(id, size: 600_000)
        try await spool.write(id, offset: 0, ByteBuffer(bytes: content))
        let digest = Array(SHA256.hash(data: content))
        #expect(try await spool.finish(id, algorithm: .sha256, digest: digest) == "sha256:" + digest.hexadecimal)
    }

    /// A copy to a slow disk may take an hour. Other content is checked, verified and synced meanwhile.
    @Test func nothingWaitsForWhatIsPutInPlace() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let end = DispatchSemaphore(value: 0)
        let (begun, start) = AsyncStream.makeStream(of: Void.self)
        async let wasBusy = spool.publisher.isBusy(start, until: end)
        for await _ in begun { break }
        let destination = Publisher.Destination(directory: directory.path, conflict: .rename, reserve: 0)
        try await spool.settler.check(SafeName("name"), size: 10, spool: spool.directory, destination)
        let content = "0123456789"
        let digests: [(ResourceEnd.DigestAlgorithm, [UInt8])] = [
            (.xxh3, try Self.xxh3(content)), (.sha256, Array(SHA256.hash(data: Data(content.utf8)))),
        ]
        for (algorithm, digest) in digests {
            let id = ResourceID.random()
            _ = try await spool.begin(id, size: 10)
            try await spool.write(id, offset: 0, ByteBuffer(string: content))
            _ = try await spool.finish(id, algorithm: algorithm, digest: digest)
        }
        end.signal()
        #expect(await wasBusy, "all came while the copy was under way")
    }

    @Test func bytesOutOfPlaceOrBeyondTheSizeAreRefused() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        _ = try await spool.begin(id, size: 4)
        for offset in [1, 4, 5, UInt64.max] {
            #expect(await self.code { _ = try await spool.write(id, offset: offset, ByteBuffer(string: "x")) } == .protocolViolation)
        }
        #expect(await self.code { _ = try await spool.write(id, offset: 0, ByteBuffer(string: "12345")) } == .tooLarge)
        try await spool.write(id, offset: 0, ByteBuffer(string: "1234"))
        #expect(await self.code { _ = try await spool.write(id, offset: 0, ByteBuffer(string: "1")) } == .protocolViolation)
        #expect(await self.code { _ = try await spool.write(id, offset: 4, ByteBuffer(string: "5")) } == .tooLarge)
        #expect(try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("1234")).hasPrefix("xxh3:"))
    }

    @Test func aWrongDigestOrMissingBytesLeaveNothing() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let good = try Self.xxh3("1234")
        let digests: [[UInt8]] = [[], Array(good.dropLast()), good + [0], good.reversed(), Array(repeating: 0, count: 16)]
        for digest in digests {
            for algorithm in [ResourceEnd.DigestAlgorithm.xxh3, .sha256] {
                let id = ResourceID.random()
                _ = try await spool.begin(id, size: 4)
                try await spool.write(id, offset: 0, ByteBuffer(string: "1234"))
                #expect(await self.code { _ = try await spool.finish(id, algorithm: algorithm, digest: digest) } == .digestMismatch)
            }
        }
        let short = ResourceID.random()
        _ = try await spool.begin(short, size: 5)
        try await spool.write(short, offset: 0, ByteBuffer(string: "1234"))
        #expect(await self.code { _ = try await spool.finish(short, algorithm: .xxh3, digest: good) } == .digestMismatch)
        #expect(try directory.names("spool/partial") == [])
        #expect(try directory.names("spool/complete") == [])
        #expect(await spool.heldBytes() == 0)
    }

    @Test(arguments: [UInt64.max, UInt64(Int64.max) + 1]) func aLyingSizeIsRefused(size: UInt64) async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        #expect(await self.code { _ = try await spool.begin(.random(), size: size, quota: .max) } == .tooLarge)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 1 << 62, quota: .max) } == .noSpace)
        #expect(try directory.names("spool/partial") == [])
        #expect(await spool.heldBytes() == 0)
    }

    @Test func theQuotaAtItsEdge() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let (first, second) = (ResourceID.random(), ResourceID.random())
        // The quota has 256 blocks. A file takes one in addition to its own.
        #expect(await self.code { _ = try await spool.begin(first, size: Self.mebibyte - 4095, quota: Self.mebibyte) } == .noSpace)
        _ = try await spool.begin(first, size: Self.mebibyte - 3 * 4096, quota: Self.mebibyte)
        #expect(await self.code { _ = try await spool.begin(second, size: 4097, quota: Self.mebibyte) } == .noSpace)
        _ = try await spool.begin(second, size: 4096, quota: Self.mebibyte)
        await spool.abandon(first)
        await spool.abandon(first)
        #expect(await spool.heldBytes() == fileRoom(4096))
        _ = try await spool.begin(first, size: Self.mebibyte - 3 * 4096 - 10, quota: Self.mebibyte)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 0, quota: Self.mebibyte) } == .noSpace)
    }

    @Test func theReserveIsLeftFree() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 1, quota: .max, reserve: 1) } == .noSpace)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 0, quota: .max, reserve: 1) } == .noSpace)
    }

    @Test func theReserveIsAPartOfTheWhole() {
        let space = SafeDirectory.Space(total: 1000, free: 100)
        for (reserve, usable) in [(0, 100), (0.0999, 1), (0.1, 0), (1, 0), (2, 0), (-1, 100)] as [(Double, UInt64)] {
            #expect(space.usable(reserve: reserve) == usable, "\(reserve)")
        }
        let endless = SafeDirectory.Space(total: .max, free: .max)
        #expect(endless.usable(reserve: 0) == .max)
        #expect(endless.usable(reserve: 0.5) >= UInt64(Int64.max))
        #expect(endless.usable(reserve: 1) == 0)
    }

    /// With small files, the entries run out before the bytes.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func theReserveIsLeftFreeOfEntriesToo() async throws {
        let disk = try SmallDisk(kilobytes: 1024, entries: 100)
        let spool = try Spool(directory: disk.path)
        let entries = try #require(try SafeDirectory(path: disk.path).entrySpace())
        let (free, total) = (Double(entries.free), Double(entries.total))
        #expect(await self.code { _ = try await spool.begin(.random(), size: 1, reserve: (free + 0.5) / total) } == .noSpace)
        _ = try await spool.begin(.random(), size: 1, reserve: (free - 0.5) / total)
    }

    /// A copy respects the reserve of its own disk.
    @Test(.enabled(if: OtherDisk.isAvailable, "skipped: /dev/shm is no other file system"))
    func aCopyKeepsToTheReserve() async throws {
        let (directory, received) = (try StateDirectory(), try OtherDisk.directory())
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        _ = try await spool.begin(id, size: 1)
        try await spool.write(id, offset: 0, ByteBuffer(string: "x"))
        _ = try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("x"))
        let content = try await spool.content(id)
        func put(_ reserve: Double) async throws -> String? {
            let destination = Publisher.Destination(directory: received.path, conflict: .rename, reserve: reserve)
            return try await spool.publisher.publish(content, as: SafeName("a"), destination)
        }
        #expect(await self.code { _ = try await put(1) } == .noSpace)
        #expect(try received.names("") == [])
        #expect(try directory.names("spool/publishing") == [])
        #expect(try await put(0) == "\(received.path)/a")
    }

    /// No hard link is possible there.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func behindAnotherMountOfTheSpoolsDiskItTakesItsRoomTwice() async throws {
        let disk = try SmallDisk(kilobytes: 512)
        let place = "\(disk.path)/in"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let bound = try BoundDirectory(of: place)
        let spool = try Spool(directory: disk.path)
        func check(_ kibibytes: UInt64, _ directory: String) async -> EarshotError.Code? {
            let destination = Publisher.Destination(directory: directory, conflict: .rename, reserve: 0)
            return await self.code {
                try await spool.settler.check(SafeName("a"), size: kibibytes * 1024, spool: spool.directory, destination)
            }
        }
        #expect(await check(300, place) == nil)
        #expect(await check(300, bound.path) == .noSpace)
        #expect(await check(200, bound.path) == nil)
        withExtendedLifetime((disk, bound)) {}
    }

    @Test func theSizeIsReservedBeforeTheFirstByte() async throws {
        let directory = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        _ = try await spool.begin(id, size: Self.mebibyte)
        let status = try #require(FileStatus(path: "\(directory.path)/spool/partial/\(id)"))
        #expect(status.size == 0, "the size says what was written")
        let isInMemory = try SafeDirectory(path: directory.path).isInMemory
        #expect(status.allocated >= Self.mebibyte || isInMemory)
    }

    @Test func theSweepAtTheStart() async throws {
        let directory = try StateDirectory()
        let (kept, orphan, unfinished) = (ResourceID.random(), ResourceID.random(), ResourceID.random())
        do {
            let spool = try self.spool(directory)
            for id in [kept, orphan] {
                _ = try await spool.begin(id, size: 1)
                try await spool.write(id, offset: 0, ByteBuffer(string: "x"))
                _ = try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("x"))
            }
            _ = try await spool.begin(unfinished, size: 100)
        }
        try Data("?".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/spool/complete/stray"))
        let spool = try self.spool(directory)
        #expect(await spool.heldBytes() == 3 * fileRoom(1))
        let running = ResourceID.random()
        _ = try await spool.begin(running, size: 5)
        let swept = try await spool.sweep(keeping: [kept, ResourceID.random()])
        #expect(Set(swept.removed) == [orphan.description, unfinished.description, "stray"])
        #expect(swept.left.isEmpty)
        #expect(try directory.names("spool/complete") == [kept.description])
        #expect(try directory.names("spool/partial") == [running.description])
        #expect(await spool.heldBytes() == fileRoom(1) + fileRoom(5))
        #expect(try await spool.content(kept).size == 1)
    }

    @Test func nothingIsFollowedOrReplacedInTheSpool() async throws {
        let directory = try StateDirectory()
        let outside = try StateDirectory()
        let spool = try self.spool(directory)
        let id = ResourceID.random()
        let link = "\(directory.path)/spool/partial/\(id)"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "\(outside.path)/x")
        _ = try await spool.begin(id, size: 1)
        try await spool.write(id, offset: 0, ByteBuffer(string: "x"))
        try FileManager.default.createSymbolicLink(
            atPath: "\(directory.path)/spool/complete/\(id)", withDestinationPath: "\(outside.path)/y")
        #expect(await self.code { _ = try await spool.finish(id, algorithm: .xxh3, digest: Self.xxh3("x")) } == .storage)
        #expect(try outside.names("") == [])
    }

    /// On a real full disk; needs the privilege to mount one.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func aReallyFullDisk() async throws {
        let disk = try SmallDisk(kilobytes: 512)
        let spool = try Spool(directory: disk.path)
        #expect(await self.code { _ = try await spool.begin(.random(), size: Self.mebibyte) } == .noSpace)
        let id = ResourceID.random()
        _ = try await spool.begin(id, size: 400 * 1024)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 200 * 1024) } == .noSpace)
        // Reserved space can be written, and written bytes count once.
        #expect(try await spool.write(id, offset: 0, ByteBuffer(repeating: 1, count: 400 * 1024)) == 400 * 1024)
        let left = try SafeDirectory(path: disk.path).space().free
        let next = ResourceID.random()
        _ = try await spool.begin(next, size: left - 4096)
        #expect(await self.code { _ = try await spool.begin(.random(), size: 1) } == .noSpace)
        try await spool.write(next, offset: 0, ByteBuffer(string: "x"))
        // After the interruption, the space is no longer promised, and the received bytes remain.
        await spool.pause(next)
        let other = ResourceID.random()
        #expect(await self.code { _ = try await spool.begin(other, size: left - 4096) } == .noSpace)
        _ = try await spool.begin(other, size: left - 3 * 4096)
        // The transfer resumes when there is room again, and not before.
        let allowance = Spool.Allowance(quota: .max, reserve: 0)
        await spool.abandon(other)
        #expect(try await spool.resume(next, size: left - 4096, allowance)?.count == 1)
        await spool.pause(next)
        _ = try await spool.begin(other, size: left - 3 * 4096)
        #expect(await self.code { _ = try await spool.resume(next, size: left - 4096, allowance) } == .noSpace)
        #expect(try await spool.resume(next, size: left - 4096, allowance) == nil, "it is gone")
    }
}

/// Returns the part of a quota that a file of this size takes, on a disk with blocks of 4,096 bytes.
func fileRoom(_ bytes: UInt64) -> UInt64 { DiskBlocks(size: 4096).file(bytes) }

extension Spool {
    /// Begins with an allowance that is irrelevant for the test.
    func begin(_ id: ResourceID, size: UInt64, quota: UInt64 = 1 << 30, reserve: Double = 0) throws(EarshotError) -> UInt64 {
        try self.begin(id, size: size, Allowance(quota: quota, reserve: reserve))
    }

    func read(_ id: ResourceID, at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        try self.read(try self.open(id), at: offset, count: count)
    }
}

extension Publisher {
    /// Occupies the thread until `end`, like a long copy. Returns whether `end` was signalled.
    fileprivate func isBusy(_ begun: AsyncStream<Void>.Continuation, until end: DispatchSemaphore) -> Bool {
        begun.yield()
        return end.wait(timeout: .now() + .seconds(20)) == .success
    }
}
