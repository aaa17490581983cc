import EarshotControl
import EarshotSafety
import Synchronization

/// Sends one file to its recipients and follows it to the end.
struct FileUpload: Sendable {
    let file: SourceFile
    let recipients: [String]
    let client: ControlClient

    /// What became of it at one recipient.
    struct Result: Sendable {
        let recipient: String
        /// The row, where there is one.
        let resource: ControlAPI.Resource?
        let status: ExitStatus
        /// Why not, escaped.
        let failure: CommandFailure?

        init(_ resource: ControlAPI.Resource) {
            self.recipient = resource.peerName
            self.resource = resource
            switch resource.state {
            case .known(.completed): self.failure = nil
            case .known(.cancelled): self.failure = CommandFailure(.failure, "it was cancelled")
            case .known(.failed), .known(.offered), .known(.transferring), .known(.paused), .unknown:
                self.failure = CommandFailure(
                    code: resource.error?.code ?? "", message: resource.error?.message ?? "it is \(resource.state.rawValue)",
                    peer: resource.peerName)
            }
            self.status = self.failure?.status ?? .done
        }

        init(recipient: String, failure: CommandFailure) {
            self.recipient = recipient
            self.resource = nil
            self.failure = failure
            self.status = failure.status
        }

        /// Says it on standard error: failures always, success where a person watches.
        func tell(file: String) {
            let (file, recipient) = (file.escapedForDisplay, self.recipient.escapedForDisplay)
            guard let failure = self.failure else {
                if Terminal.isError { Standard.note("sent \(file) to \(recipient)") }
                return
            }
            Standard.note("cannot send \(file) to \(recipient): \(failure.message ?? "")")
            if let hint = failure.hint { Standard.say(hint) }
        }
    }

    /// The rows as they are known, by id.
    private final class Rows: Sendable {
        let byID = Mutex<[String: ControlAPI.Resource]>([:])

        var areOver: Bool { self.byID.withLock { rows in rows.values.allSatisfy(\.isOver) } }
        /// The names of those who have not answered the offer.
        var awaited: [String] { self.byID.withLock { rows in rows.values.filter { $0.state == .offered }.map(\.peerName) } }
        var running: [String] { self.byID.withLock { rows in rows.values.filter { !$0.isOver }.map(\.id) } }

        func update(_ resource: ControlAPI.Resource) {
            self.byID.withLock { rows in
                // What is over stays over, in whatever order the news come.
                if rows[resource.id]?.isOver != true { rows[resource.id] = resource }
            }
        }
    }

    /// The daemon opens the file itself; a signal cancels the transfer.
    func byPath() async throws -> [Result] {
        // Subscribed first, so that not even the end of a small file is missed.
        let events = try await self.client.events()
        let rows = Rows()
        return try await Interrupts.takingBack {
            for id in rows.running { try? await self.client.removeResource(id) }
        } _: {
            let request = ControlAPI.ResourceRequest(to: self.recipients, path: self.file.absolutePath)
            let made: [ControlAPI.Resource]
            do {
                made = try await self.client.sendResource(request).value.resources
            } catch let error as ControlError {
                throw CommandFailure(error, peer: self.recipients.count == 1 ? self.recipients.first : nil)
            }
            made.forEach(rows.update)
            let ids = Set(made.map(\.id))
            self.draw(rows)
            try await self.sayingWhoIsAwaited {
                rows.awaited
            } _: {
                guard !rows.areOver else { return }
                try await events.forEach { event in
                    if let resource = event.value.resource, ids.contains(resource.id) {
                        rows.update(resource)
                    } else if event.value.type == .gap {
                        for id in rows.running { rows.update(try await self.client.resource(id).value) }
                    } else {
                        return true
                    }
                    self.draw(rows)
                    return !rows.areOver
                }
            }
            return rows.byID.withLock { rows in made.compactMap { rows[$0.id] } }.map(Result.init)
        }
    }

    /// How long an answer may take before the sender says that it waits.
    private static let patience: Duration = .seconds(1)

    /// Does `operation`, and says once for whom it waits, if it has to.
    private func sayingWhoIsAwaited<Value: Sendable>(
        _ awaited: @escaping @Sendable () async -> [String], _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                try await Task.sleep(for: Self.patience)
                for name in await awaited() where !Task.isCancelled {
                    ProgressLine.leave()
                    Standard.note("waiting for \(name.escapedForDisplay) to accept \(self.file.name.escapedForDisplay)")
                }
                return nil
            }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func draw(_ rows: Rows) {
        let (transferred, size, rate) = rows.byID.withLock { rows in
            rows.values.reduce(into: (UInt64(0), UInt64(0), UInt64(0))) { sum, row in
                sum.0 = sum.0.addingClamped(row.transferred)
                sum.1 = sum.1.addingClamped(row.size)
                sum.2 = sum.2.addingClamped(row.bytesPerSecond)
            }
        }
        ProgressLine.draw(name: self.file.name, transferred: transferred, size: size, rate: rate)
    }

    /// The daemon is another user and is given the bytes, one recipient after the other; a signal ends the connection, and with it the transfer.
    func byContent() async throws -> [Result] {
        var results: [Result] = []
        for recipient in self.recipients {
            do {
                results.append(try await self.upload(to: recipient))
            } catch ControlError.problem(let problem) {
                results.append(Result(recipient: recipient, failure: CommandFailure(.problem(problem), peer: recipient)))
            }
        }
        return results
    }

    private func upload(to recipient: String) async throws -> Result {
        let start = ContinuousClock.now
        let shown = Mutex<ContinuousClock.Instant?>(nil)
        let name = self.file.name
        let size = Mutex<UInt64>(0)
        let (total, bytes) = try self.file.content { read in
            let now = ContinuousClock.now
            let isDue = shown.withLock { last in
                guard last.map({ now - $0 > .milliseconds(100) }) ?? true else { return false }
                last = now
                return true
            }
            guard isDue else { return }
            let seconds = (now - start) / .seconds(1)
            let rate = seconds > 0.2 ? UInt64(Double(read) / seconds) : 0
            ProgressLine.draw(name: name, transferred: read, size: size.withLock { $0 }, rate: rate)
        }
        size.withLock { $0 = total }
        guard let length = Int64(exactly: total) else { throw CommandFailure(.data, "\(self.file.path.escapedForDisplay) is too large") }
        let answer = try await self.sayingWhoIsAwaited {
            let resources = (try? await self.client.resources().value.resources) ?? []
            // The row is not known yet: the newest of the name is this one's.
            return resources.last { $0.direction == .outgoing && $0.state == .offered && $0.name == name }.map { [$0.peerName] } ?? []
        } _: {
            try await self.client.sendResource(to: recipient, name: name, size: length, content: bytes)
        }
        guard let resource = answer.value.resources.first else {
            throw ControlError.malformed("the daemon's answer names no resource")
        }
        return Result(resource)
    }
}

extension UInt64 {
    fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
