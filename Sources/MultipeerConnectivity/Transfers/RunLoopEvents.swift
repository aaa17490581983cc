import Foundation

/// Calls a stream's delegate on the run loops in which the stream is scheduled.
///
/// Foundation's own streams never do that on Linux. A source keeps a loop from ending, and makes `run(mode:before:)` return after it was
/// handled, like a stream on Apple's systems. Signalling a source does not wake up a sleeping loop, and neither does `RunLoop.perform`.
/// Adding a timer does.
final class RunLoopEvents: @unchecked Sendable {
    /// Foundation's only public source on Linux. It was made for XCTest, and every release since then has it.
    private final class Source: RunLoop._Source {
        private let look: @Sendable () -> Void

        init(look: @escaping @Sendable () -> Void) {
            self.look = look
            super.init(order: 0)
        }

        override func perform() { self.look() }
    }

    private struct Place {
        let loop: RunLoop
        let mode: RunLoop.Mode
        let source: Source
    }

    private let lock = NSLock()
    private var places: [Place] = []
    /// Whether a loop will handle the events.
    private var isDue = false
    /// Checks the stream, and calls its delegate.
    private let look: @Sendable () -> Void

    init(look: @escaping @Sendable () -> Void) { self.look = look }

    deinit {
        for place in self.places { place.source.invalidate() }
    }

    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = Place(loop: loop, mode: mode, source: Source(look: { [weak self] in self?.perform() }))
        loop._add(place.source, forMode: mode)
        self.lock.withLock { self.places.append(place) }
        Self.wake([place])
    }

    private func perform() {
        self.lock.withLock { self.isDue = false }
        self.look()
    }

    func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let gone = self.lock.withLock { () -> [Place] in
            defer { self.places.removeAll { $0.loop === loop && $0.mode == mode } }
            return self.places.filter { $0.loop === loop && $0.mode == mode }
        }
        for place in gone { place.source.invalidate() }
    }

    /// Removes the sources when the stream is over, so that no loop waits for it.
    func end() {
        let gone = self.lock.withLock { () -> [Place] in
            defer { self.places = [] }
            return self.places
        }
        for place in gone { place.source.invalidate() }
        // Wakes up each loop, so that it ends if it has nothing else to wait for.
        for place in gone { place.loop.add(Timer(timeInterval: 0, repeats: false) { _ in }, forMode: place.mode) }
    }

    /// Schedules a call of the delegate after a possible change. One call covers all changes until then.
    func wake() {
        Self.wake(
            self.lock.withLock {
                guard !self.isDue, !self.places.isEmpty else { return [] }
                self.isDue = true
                return self.places
            })
    }

    private static func wake(_ places: [Place]) {
        for place in places {
            place.source.signal()
            place.loop.add(Timer(timeInterval: 0, repeats: false) { _ in }, forMode: place.mode)
        }
    }
}
