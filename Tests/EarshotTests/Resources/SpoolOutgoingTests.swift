import EarshotSafety
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import Earshot

/// Content from a caller that is sent from the spool.
@Suite struct SpoolOutgoingTests {
    private func kept(_ spool: Spool, _ id: ResourceID) async throws {
        _ = try await spool.begin(id, size: 10)
        _ = try await spool.write(id, offset: 0, ByteBuffer(string: "0123456789"))
        #expect(try await spool.keepForSending(id) == spool.outgoingPath(id))
    }

    @Test func whatGoesToSeveralTakesItsRoomOnce() async throws {
        let directory = try StateDirectory()
        let ids = (0..<3).map { _ in ResourceID.random() }
        do {
            let spool = try Spool(directory: directory.path)
            try await self.kept(spool, ids[0])
            try await spool.share(ids[0], with: Array(ids.dropFirst()))
            #expect(Set(try directory.names("spool/outgoing")) == Set(ids.map(\.description)))
            #expect(await spool.heldBytes() == fileRoom(10))
        }
        // The same after a restart.
        let spool = try Spool(directory: directory.path)
        _ = try await spool.sweep(keeping: [], outgoing: Set(ids))
        #expect(await spool.heldBytes() == fileRoom(10))
        for id in ids.dropLast() { await spool.dropOutgoing(id) }
        #expect(await spool.heldBytes() == fileRoom(10), "one still needs it")
        await spool.dropOutgoing(ids[2])
        #expect(await spool.heldBytes() == 0)
        #expect(try directory.names("spool/outgoing") == [])
    }

    @Test func itIsOpenedUnderEachOfItsNames() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let (one, other) = (ResourceID.random(), ResourceID.random())
        try await self.kept(spool, one)
        try await spool.share(one, with: [other])
        let stamp = try await spool.outgoingSource(one).stamp
        await spool.dropOutgoing(one)
        let source = try await spool.outgoingSource(other)
        #expect(source.size == 10)
        #expect(source.stamp == stamp)
        let error = await #expect(throws: EarshotError.self) { _ = try await spool.outgoingSource(one) }
        #expect(error?.code == .invalidSource)
    }

    @Test func whereOneNameIsTakenNoneIsGiven() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let (one, fresh, other) = (ResourceID.random(), ResourceID.random(), ResourceID.random())
        try await self.kept(spool, one)
        try await self.kept(spool, other)
        let error = await #expect(throws: EarshotError.self) { try await spool.share(one, with: [fresh, other]) }
        #expect(error?.code == .storage)
        #expect(try directory.names("spool/outgoing").contains(one.description))
        #expect(try !directory.names("spool/outgoing").contains(fresh.description))
    }

    /// An open file of `size` bytes in the directory, that has no name any more.
    private func source(_ size: Int, in directory: StateDirectory) throws -> SourceFile {
        let path = directory.path + "/source"
        try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: path))
        let file = OpenFile(descriptor: open(path, O_RDWR | O_CLOEXEC), subject: "source")
        try #require(unlink(path) == 0)
        return try SourceFile(file, name: "source")
    }

    @Test(arguments: [0, 1, 70_000]) func anOpenFileIsCopiedWhole(_ size: Int) async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = ResourceID.random()
        _ = try await spool.begin(id, size: UInt64(size))
        try await spool.copy(try self.source(size, in: directory), into: id)
        #expect(try await Data(contentsOf: URL(fileURLWithPath: spool.keepForSending(id))) == Data(repeating: 7, count: size))
        #expect(await spool.heldBytes() == fileRoom(UInt64(size)))
    }

    @Test func aFileThatBecameShorterIsNotKept() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = ResourceID.random()
        let source = try self.source(70_000, in: directory)
        _ = try await spool.begin(id, size: source.size)
        let file = try #require(source.extent(at: 0, count: 1)).file
        try #require(ftruncate(file.descriptor, 69_999) == 0)
        let error = await #expect(throws: EarshotError.self) { try await spool.copy(source, into: id) }
        #expect(error?.code == .sourceChanged)
        await #expect(throws: EarshotError.self) { try await spool.keepForSending(id) }
        #expect(await spool.heldBytes() == 0)
    }

    @Test func aCopyEndsWithItsCaller() async throws {
        let directory = try StateDirectory()
        let spool = try Spool(directory: directory.path)
        let id = ResourceID.random()
        let source = try self.source(70_000, in: directory)
        _ = try await spool.begin(id, size: source.size)
        let copy = Task {
            while !Task.isCancelled { await Task.yield() }
            try await spool.copy(source, into: id)
        }
        copy.cancel()
        let error = await #expect(throws: EarshotError.self) { try await copy.value }
        #expect(error?.code == .cancelled)
    }
}
