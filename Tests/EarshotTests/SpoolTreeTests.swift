import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// What directories take of the quota and the disk, which their declared sizes do not say: several at once, and over a restart.
@Suite(.timeLimit(.minutes(1))) struct SpoolTreeTests {
    private let source: StateDirectory
    private let bytes: ByteBuffer
    /// Declared, what is set aside for that, and what it takes on the disk.
    private let size: UInt64
    private let declared: UInt64
    private let room: UInt64

    /// Many files of one byte: the disk gives each of them a block, and one for its name.
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

    /// Writes all of them at once, each on a thread of its own, as data connections do; returns those that had room.
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

    /// Eight are declared; the quota has room for three of them whole beside the others as declared, or for one byte less.
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
        // What the refused ones had is free again, for content of any kind.
        let left = (quota - count * self.room) / 4096 * 4096 - 4096
        let next = ResourceID.random()
        await #expect(throws: EarshotError.self) { _ = try await spool.begin(next, size: left + 1, quota: quota) }
        _ = try await spool.begin(next, size: left, quota: quota)
        await spool.abandon(next)
        // The next start counts the same.
        #expect(try await Spool(directory: directory.path).heldBytes() == count * self.room)
        for id in whole { try await spool.remove(id) }
        #expect(await spool.heldBytes() == 0)
    }

    /// Interrupted in its entries, it holds what has come, over a restart too; when it goes on it holds what it will take, where that is free.
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
        // Forty files are not there.
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

    /// Killed before its manifest was admitted, it is held to the quota when it goes on.
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

    /// After a loss of power there are entries, and the end of the list of them is missing: it begins anew, and none of them is in its way.
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

    /// Nothing of the first is on the disk yet but its manifest; what it will take is promised to it.
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

    /// As of a directory that it has replaced, with another user's files in it, a part cannot be removed. It counts until it is gone, and then
    /// once; whether the next try has it gone or a person has.
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
            // The next start counts the same, and says where it is.
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

    /// A copy leaves of the entries of its disk what is to be left.
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

    // MARK: Killed while it was put in place

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

    /// It changed places with an older one, or a file, and nothing more was done: the next start knows where it is, and that what lies in
    /// the spool is not it.
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

    /// Two may fetch one directory at once: the first to have it does not cut the other short.
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

    /// Noted, and not put there: because the name is taken, or because it was killed before.
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
        // The name is free again: moved there it is known too.
        try FileManager.default.removeItem(atPath: "\(received.path)/tr")
        let place = try await self.publish(id, of: next, to: received, .rename)
        #expect(place == "\(received.path)/tr")
        #expect(try await Spool(directory: directory.path).placeOfTree(id) == place)
    }

    /// On another file system it is a copy, and the spool has its own still: the next start knows where it is, and no second one is put there.
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

    /// A copy that was not wanted is gone, and what gets its number there later is not taken for it.
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

/// A file system that is not the one of temporary files.
enum OtherDisk {
    private static let path = "/dev/shm"

    static let isAvailable: Bool = {
        guard let own = FileStatus(path: FileManager.default.temporaryDirectory.path), let other = FileStatus(path: Self.path) else {
            return false
        }
        return own.device != other.device && FileManager.default.isWritableFile(atPath: Self.path)
    }()

    /// A directory there, gone with its test.
    static func directory() throws -> StateDirectory { try StateDirectory(in: URL(fileURLWithPath: Self.path)) }
}
