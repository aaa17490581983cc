import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// The space of directories in the quota and on the disk, which their declared sizes do not show: several at once, and across a restart.
@Suite(.timeLimit(.minutes(1))) struct SpoolTreeTests {
    private let source: StateDirectory
    private let bytes: ByteBuffer
    /// The declared size, the space reserved for it, and the space on the disk.
    private let size: UInt64
    private let declared: UInt64
    private let room: UInt64

    /// Creates many files of one byte. The disk takes a block for each, and one for its name.
    init() throws {
        let source = try StateDirectory()
        try FileManager.default.createDirectory(atPath: "\(source.path)/tr", withIntermediateDirectories: true)
        for number in 0..<50 { try Data("x".utf8).write(to: URL(fileURLWithPath: "\(source.path)/tr/\(number)")) }
        let tree = try TreeSource(path: "\(source.path)/tr")
        let bytes = try tree.whole()
        let length = try bytes.withUnsafeReadableBytes { header in
            try TreeManifest.lengths(header: UnsafeRawBufferPointer(rebasing: header.prefix(TreeLimits.headerLength))).manifest
        }
        self.room = try TreeManifest(decoding: Array(bytes.readableBytesView.prefix(length))).room(on: DiskBlocks(size: 4096))
        self.size = tree.size
        self.declared = DiskBlocks(size: 4096).tree(tree.size)
        self.bytes = bytes
        self.source = source
        #expect(self.room > 50 * 4096 && self.size < 4096)
    }

    private static let peer = PeerID(subjectPublicKeyInfo: [1])

    private func begin(_ count: Int, in spool: Spool, quota: UInt64) async throws -> [ResourceID] {
        let ids = (0..<count).map { _ in ResourceID.random() }
        for id in ids {
            _ = try await spool.begin(id, kind: .directory, size: self.size, Spool.Allowance(quota: quota, reserve: 0))
        }
        return ids
    }

    /// Writes all of them concurrently, each on its own thread, like data connections. Returns those for which there was room.
    private func write(_ ids: [ResourceID], in spool: Spool) async throws -> [ResourceID] {
        let bytes = self.bytes
        return try await withThrowingTaskGroup(of: ResourceID?.self) { group in
            for id in ids {
                let content = try await spool.incoming(id)
                group.addTask {
                    do throws(EarshotError) {
                        let result = bytes.withUnsafeReadableBytes { bytes in
                            Result { () throws(EarshotError) in try content.write(bytes, at: 0) }
                        }
                        _ = try result.get()
                        return id
                    } catch {
                        #expect(error.code == .noSpace)
                        return nil
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
        }
    }

    private func finish(_ id: ResourceID, in spool: Spool) async throws {
        let hash = try XXH3()
        hash.update(self.bytes)
        _ = try await spool.finish(id, algorithm: .xxh3, digest: hash.digest())
    }

    /// Eight are declared. The quota has room for three complete ones beside the declared sizes of the others, or for one byte less.
    @Test(arguments: [0, 1] as [UInt64]) func togetherTheyKeepToTheQuota(_ missing: UInt64) async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let quota = 3 * self.room + 5 * self.declared - missing
        let ids = try await self.begin(8, in: spool, quota: quota)
        let whole = try await self.write(ids, in: spool)
        let count = UInt64(missing == 0 ? 3 : 2)
        #expect(whole.count == count)
        #expect(await spool.heldBytes() == count * self.room + (8 - count) * self.declared)
        for id in ids {
            if whole.contains(id) { try await self.finish(id, in: spool) } else { await spool.abandon(id) }
        }
        #expect(await spool.heldBytes() == count * self.room)
        // The space of the refused ones is available again, for content of any kind.
        let left = (quota - count * self.room) / 4096 * 4096 - 4096
        let next = ResourceID.random()
        await #expect(throws: EarshotError.self) { _ = try await spool.begin(next, size: left + 1, quota: quota) }
        _ = try await spool.begin(next, size: left, quota: quota)
        await spool.abandon(next)
        // The next start has the same count.
        #expect(try await Spool(directory: directory.path).heldBytes() == count * self.room)
        for id in whole { try await spool.remove(id) }
        #expect(await spool.heldBytes() == 0)
    }

    /// A tree that is interrupted within its entries holds the received part, also across a restart. When it resumes, it holds its final
    /// space, if that is available.
    @Test(arguments: [false, true]) func interruptedItHoldsWhatHasCome(_ isTaken: Bool) async throws {
        let directory = try StateDirectory()
        let quota = self.room
        let spool = try Spool(directory: directory.path)
        let id = try await self.begin(1, in: spool, quota: quota)[0]
        let part = Int(self.size) - 40
        _ = try await spool.write(id, offset: 0, try #require(self.bytes.getSlice(at: 0, length: part)))
        #expect(await spool.heldBytes() == self.room)
        await spool.pause(id)
        let came = await spool.heldBytes()
        // Forty files are missing.
        #expect(came < self.room - 40 * 4096 && came > self.declared)
        let next = try Spool(directory: directory.path)
        #expect(await next.adopt([id: Spool.Left(size: self.size, peer: Self.peer)]) == [id: UInt64(part)])
        try await next.sweep(keeping: [])
        #expect(await next.heldBytes() == came)
        let other = ResourceID.random()
        _ = try await next.begin(other, size: self.room - came - 2 * 4096, quota: quota)
        let allowance = Spool.Allowance(quota: quota, reserve: 0)
        if isTaken {
            let error = await #expect(throws: EarshotError.self) { _ = try await next.resume(id, size: self.size, allowance) }
            #expect(error?.code == .noSpace)
            await next.abandon(other)
            #expect(await next.heldBytes() == 0)
            return
        }
        await next.abandon(other)
        let held = try await next.resume(id, size: self.size, allowance)
        #expect(held?.count == UInt64(part))
        #expect(await next.heldBytes() == self.room)
        _ = try await next.write(id, offset: UInt64(part), try #require(self.bytes.getSlice(at: part, length: 40)))
        try await self.finish(id, in: next)
        #expect(await next.heldBytes() == self.room)
    }

    /// A tree whose daemon was killed before its manifest was admitted is checked against the quota when it resumes.
    @Test(arguments: [0, 1] as [UInt64]) func notYetAdmittedItIsWhenItGoesOn(_ missing: UInt64) async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = try await self.begin(1, in: spool, quota: self.room)[0]
        _ = try await spool.write(id, offset: 0, try #require(self.bytes.getSlice(at: 0, length: Int(self.size) - 10)))
        try FileManager.default.removeItem(atPath: "\(directory.path)/spool/partial/\(id)/room")
        let next = try Spool(directory: directory.path)
        _ = await next.adopt([id: Spool.Left(size: self.size, peer: Self.peer)])
        #expect(await next.heldBytes() < self.room)
        let allowance = Spool.Allowance(quota: self.room - missing, reserve: 0)
        if missing == 0 {
            #expect(try await next.resume(id, size: self.size, allowance) != nil)
        } else {
            await #expect(throws: EarshotError.self) { _ = try await next.resume(id, size: self.size, allowance) }
        }
        #expect(await next.heldBytes() == (missing == 0 ? self.room : 0))
    }

    /// After a loss of power there are entries, but the end of their list is missing. The tree starts again, and the entries are not in
    /// the way.
    @Test func entriesWithoutTheirWholeListComeAgain() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = try await self.begin(1, in: spool, quota: self.room)[0]
        _ = try await spool.write(id, offset: 0, try #require(self.bytes.getSlice(at: 0, length: Int(self.size) - 10)))
        #expect(truncate("\(directory.path)/spool/partial/\(id)/manifest", 100) == 0)
        let next = try Spool(directory: directory.path)
        #expect(await next.adopt([id: Spool.Left(size: self.size, peer: Self.peer)]) == [:])
        try await next.sweep(keeping: [])
        let allowance = Spool.Allowance(quota: self.room, reserve: 0)
        #expect(try await next.resume(id, size: self.size, allowance) == nil)
        _ = try await next.begin(id, kind: .directory, size: self.size, allowance)
        _ = try await next.write(id, offset: 0, self.bytes)
        try await self.finish(id, in: next)
    }

    /// Only the manifest of the first one is on the disk. Its final space is promised to it.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func togetherTheyFitTheDisk() async throws {
        let disk = try SmallDisk(kilobytes: Int(self.room) * 3 / 2 / 1024)
        let spool = try Spool(directory: disk.path)
        let ids = try await self.begin(2, in: spool, quota: .max)
        let manifest = Int(self.size) - 50
        for (number, id) in ids.enumerated() {
            let piece = try #require(self.bytes.getSlice(at: 0, length: manifest))
            if number == 0 {
                _ = try await spool.write(id, offset: 0, piece)
            } else {
                await #expect(throws: EarshotError.self) { _ = try await spool.write(id, offset: 0, piece) }
                await spool.abandon(id)
            }
        }
        _ = try await spool.write(ids[0], offset: UInt64(manifest), try #require(self.bytes.getSlice(at: manifest, length: 50)))
        try await self.finish(ids[0], in: spool)
        #expect(await spool.heldBytes() == self.room)
    }

    /// A part cannot be removed, as with a replaced directory that contains another user's files. It counts until it is gone, and only
    /// once, whether the next attempt or a user removes it.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting needs CAP_SYS_ADMIN"), arguments: [false, true])
    func whatCannotBeRemovedCountsUntilItIsGone(_ isRemovedByHand: Bool) async throws {
        let (directory, empty) = (try StateDirectory(), try StateDirectory())
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        let outer = "\(directory.path)/spool/complete/\(id)"
        do {
            let busy = try BoundDirectory(of: empty.path, at: "\(outer)/tree/busy")
            for _ in 0..<2 {
                let error = await #expect(throws: EarshotError.self) { try await spool.remove(id) }
                #expect(error?.code == .storage && error?.message.contains(busy.path) == true)
                #expect(await spool.heldBytes() == self.room)
                #expect(try directory.names("spool/complete/\(id)") == ["room", "tree"])
            }
            // The next start has the same count, and reports the path.
            let next = try Spool(directory: directory.path)
            let swept = try await next.sweep(keeping: [])
            #expect(swept.removed == [])
            #expect(swept.left.count == 1 && swept.left.first?.message.contains(busy.path) == true)
            #expect(await next.heldBytes() == self.room)
            withExtendedLifetime((busy, empty)) {}
        }
        if isRemovedByHand { try FileManager.default.removeItem(atPath: outer) }
        for _ in 0..<2 { try await spool.remove(id) }
        #expect(await spool.heldBytes() == 0)
        #expect(try directory.names("spool/complete") == [])
    }

    /// A copy respects the reserve of entries on its disk.
    @Test(.enabled(if: SmallDisk.isAvailable, "skipped: mounting a small tmpfs needs CAP_SYS_ADMIN"))
    func aCopyKeepsToTheReserveOfEntries() async throws {
        let (directory, disk) = (try StateDirectory(), try SmallDisk(kilobytes: 8192, entries: 100))
        let spool = try Spool(directory: directory.path)
        let content = try await spool.content(try await self.whole(in: spool))
        func put(_ reserve: Double) async throws -> String? {
            let destination = Publisher.Destination(directory: disk.path, conflict: .rename, reserve: reserve)
            return try await spool.publisher.publish(content, as: SafeName("tr"), destination)
        }
        let error = await #expect(throws: EarshotError.self) { _ = try await put(0.6) }
        #expect(error?.code == .noSpace && error?.message.contains("and 51 are needed") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
        #expect(try await put(0.2) == "\(disk.path)/tr")
    }

    // MARK: Killed while publishing

    private func whole(in spool: Spool) async throws -> ResourceID {
        let id = try await self.begin(1, in: spool, quota: .max)[0]
        _ = try await spool.write(id, offset: 0, self.bytes)
        try await self.finish(id, in: spool)
        return id
    }

    private func publish(
        _ id: ResourceID, of spool: Spool, to received: StateDirectory, _ conflict: SafeDirectory.Conflict
    ) async throws -> String? {
        let destination = Publisher.Destination(directory: received.path, conflict: conflict, reserve: 0)
        return try await spool.publisher.publish(await spool.content(id), as: SafeName("tr"), destination)
    }

    /// The tree was exchanged with an older directory, or a file, and nothing more was done. The next start knows where the tree is, and
    /// that the entry in the spool is not the tree.
    @Test(arguments: ["directory", "file", "link"]) func replacedAndNotRecorded(_ kind: String) async throws {
        let (directory, received) = (try StateDirectory(), try StateDirectory())
        let files = FileManager.default
        let old = "\(received.path)/tr"
        switch kind {
        case "directory":
            try files.createDirectory(atPath: old, withIntermediateDirectories: true)
            for number in 0..<50 { try Data("o".utf8).write(to: URL(fileURLWithPath: "\(old)/\(number)")) }
        case "file": try Data("old".utf8).write(to: URL(fileURLWithPath: old))
        default: try files.createSymbolicLink(atPath: old, withDestinationPath: self.source.path)
        }
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        #expect(try await self.publish(id, of: spool, to: received, .overwrite) == old)
        let next = try Spool(directory: directory.path)
        #expect(await next.placeOfTree(id) == old)
        #expect(try String(contentsOfFile: "\(old)/7", encoding: .utf8) == "x")
        try await next.sweep(keeping: [])
        #expect(try directory.names("spool/complete") == [])
        #expect(files.fileExists(atPath: "\(self.source.path)/tr/7"), "what a replaced link leads to stays")
    }

    /// Two readers may fetch one directory at once. The first to finish does not interrupt the other.
    @Test(arguments: [false, true]) func whoReadsItReadsAllOfIt(_ isArchive: Bool) async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        var reader: ((Int) async throws -> ByteBuffer)?
        let expected: ByteBuffer
        do {
            let tree = try await spool.openTree(id)
            var position: UInt64 = 0
            let archive = tree.archive(named: "tr")
            expected = isArchive ? try await spool.next(tree.archive(named: "tr"), count: 1 << 20) : self.bytes
            reader = { count in
                if isArchive { return try await spool.next(archive, count: count) }
                let piece = try await spool.read(tree, at: position, count: count)
                position += UInt64(piece.readableBytes)
                return piece
            }
        }
        var read = try #require(try await reader?(512))
        try await spool.remove(id)
        while let piece = try await reader?(512), piece.readableBytes > 0 { read.writeImmutableBuffer(piece) }
        #expect(read == expected)
        #expect(await spool.heldBytes() == self.room, "it takes its room until it is gone")
        reader = nil
        try await eventually("it has gone with its reader") {
            try await spool.heldBytes() == 0 && directory.names("spool/complete") == []
        }
    }

    /// Noted but not published: because the name is in use, or because the daemon was killed before.
    @Test func notedAndNotPlaced() async throws {
        let (directory, received) = (try StateDirectory(), try StateDirectory())
        try FileManager.default.createDirectory(atPath: "\(received.path)/tr", withIntermediateDirectories: true)
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        #expect(try await self.publish(id, of: spool, to: received, .skip) == nil)
        let next = try Spool(directory: directory.path)
        #expect(try directory.names("spool/complete/\(id)") == ["inode", "manifest", "room", "target", "tree"])
        #expect(await next.placeOfTree(id) == nil)
        #expect(try await next.openTree(id).size == self.size)
        // The name is available again. The moved tree is recognised too.
        try FileManager.default.removeItem(atPath: "\(received.path)/tr")
        let place = try await self.publish(id, of: next, to: received, .rename)
        #expect(place == "\(received.path)/tr")
        #expect(try await Spool(directory: directory.path).placeOfTree(id) == place)
    }

    /// On another file system the tree is a copy, and the spool still has its own. The next start knows where the copy is, and publishes
    /// no second one.
    @Test(.enabled(if: OtherDisk.isAvailable, "skipped: /dev/shm is no other file system"), arguments: [false, true])
    func copiedAndNotRecorded(_ isReplacing: Bool) async throws {
        let (directory, received) = (try StateDirectory(), try OtherDisk.directory())
        let place = "\(received.path)/tr"
        if isReplacing { try FileManager.default.createDirectory(atPath: "\(place)/old", withIntermediateDirectories: true) }
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        #expect(try await self.publish(id, of: spool, to: received, .overwrite) == place)
        #expect(try directory.names("spool/complete/\(id)").contains("tree"), "it was copied")
        let next = try Spool(directory: directory.path)
        #expect(await next.placeOfTree(id) == place)
        #expect(try received.names("") == ["tr"])
        #expect(try received.names("tr").count == 50)
        #expect(try String(contentsOfFile: "\(place)/7", encoding: .utf8) == "x")
    }

    /// An unneeded copy is removed. A later entry with the same inode number is not mistaken for it.
    @Test(.enabled(if: OtherDisk.isAvailable, "skipped: /dev/shm is no other file system"))
    func copiedAndNotPlaced() async throws {
        let (directory, received) = (try StateDirectory(), try OtherDisk.directory())
        try FileManager.default.createDirectory(atPath: "\(received.path)/tr", withIntermediateDirectories: true)
        let spool = try Spool(directory: directory.path)
        let id = try await self.whole(in: spool)
        #expect(try await self.publish(id, of: spool, to: received, .skip) == nil)
        #expect(try received.names("") == ["tr"])
        #expect(try directory.names("spool/complete/\(id)") == ["manifest", "room", "target", "tree"])
        #expect(await spool.placeOfTree(id) == nil)
    }
}

/// A file system other than that of temporary files.
enum OtherDisk {
    private static let path = "/dev/shm"

    static let isAvailable: Bool = {
        guard let own = FileStatus(path: FileManager.default.temporaryDirectory.path), let other = FileStatus(path: Self.path) else {
            return false
        }
        return own.device != other.device && FileManager.default.isWritableFile(atPath: Self.path)
    }()

    /// Creates a directory there, which is deleted with its test.
    static func directory() throws -> StateDirectory { try StateDirectory(in: URL(fileURLWithPath: Self.path)) }
}
