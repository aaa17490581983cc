import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// The thread that validates chains, and the limit of its queue.
@Suite struct ChainExaminerTests {
    private let directory: StateDirectory
    private let root: TestHolder
    private let leaf: TestHolder
    private let authorities: CertificateAuthorities

    init() throws {
        self.directory = try StateDirectory()
        self.root = try TestHolder("root")
        self.leaf = try TestHolder("leaf")
        self.authorities = try CertificateAuthorities(paths: [self.root.file(in: self.directory)])
    }

    /// Creates an examiner that waits for the gate.
    private func examiner(_ gate: DispatchSemaphore? = nil) throws -> ChainExaminer {
        try ChainExaminer(
            self.authorities,
            now: {
                gate?.wait()
                gate?.signal()
                return Date()
            }, logger: quietLogger)
    }

    private func validation(_ examiner: ChainExaminer?, shows chain: [[UInt8]]) -> CertificateValidation {
        let validation = CertificateValidation(examiner)
        validation.note(chain)
        return validation
    }

    @Test func aQuestionIsAnsweredOnce() async throws {
        let examiner = try self.examiner()
        let key = try self.leaf.publicKey
        let good = self.validation(examiner, shows: try self.root.line(self.leaf))
        let (answers, continuation) = AsyncStream.makeStream(of: Date?.self)
        #expect(good.ask(for: key) { continuation.yield($0) } == .pending)
        var iterator = answers.makeAsyncIterator()
        let first = await iterator.next()
        #expect(first != nil && first != .some(nil))
        #expect(good.ask(for: key) { continuation.yield($0) } == .pointless)
        let wrong = self.validation(examiner, shows: try TestHolder("root").line(self.leaf))
        #expect(wrong.ask(for: key) { continuation.yield($0) } == .pending)
        #expect(await iterator.next() == .some(nil))
    }

    @Test func withoutAuthoritiesOrCertificatesThereIsNothingToAsk() throws {
        let chain = try self.root.line(self.leaf)
        let key = try self.leaf.publicKey
        #expect(self.validation(nil, shows: chain).ask(for: key) { _ in } == .pointless)
        let examiner = try self.examiner()
        #expect(CertificateValidation(examiner).ask(for: key) { _ in } == .pointless)
    }

    @Test func whatWaitsIsBounded() async throws {
        let gate = DispatchSemaphore(value: 0)
        let examiner = try self.examiner(gate)
        let chain = try self.root.line(self.leaf)
        let key = try self.leaf.publicKey
        let (answers, continuation) = AsyncStream.makeStream(of: Date?.self)
        let validations = (0..<EarshotLimits.waitingChains).map { _ in self.validation(examiner, shows: chain) }
        for validation in validations { #expect(validation.ask(for: key) { continuation.yield($0) } == .pending) }
        #expect(self.validation(examiner, shows: chain).ask(for: key) { continuation.yield($0) } == .refused)
        // A closed connection causes no work, and gets no answer.
        for validation in validations.dropFirst(2) { validation.withdraw() }
        gate.signal()
        var iterator = answers.makeAsyncIterator()
        for _ in 0..<2 { #expect(await iterator.next() != nil) }
        let chainOfAStranger = try TestHolder("root").line(self.leaf)
        try await eventually("the queue is empty again") {
            self.validation(examiner, shows: chainOfAStranger).ask(for: key) { continuation.yield($0) } == .pending
        }
        #expect(await iterator.next() == .some(nil), "none of those that were withdrawn was answered before")
    }
}
