import Foundation

/// Calls a stream's delegate on the run loops that the stream is scheduled in.
///
/// Foundation's own streams never do on Linux. A source keeps a loop from ending, and has `run(mode:before:)` return once it was handled, as a stream does on
/// Apple's systems. Signalling one does not wake a loop that sleeps, nor does `RunLoop.perform`; a timer that is added to it does.
final class RunLoopEvents: @unchecked Sendable {
    /// Foundation's only source on Linux that is public: made for XCTest, and in every release since.
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
    /// A loop will come to it.
    private var isDue = false
    /// Looks at the stream, and calls its delegate.
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

    /// The stream is over: no loop waits for it.
    func end() {
        let gone = self.lock.withLock { () -> [Place] in
            defer { self.places = [] }
            return self.places
        }
        for place in gone { place.source.invalidate() }
        // A loop that has nothing else to wait for finds that out when it wakes.
        for place in gone { place.loop.add(Timer(timeInterval: 0, repeats: false) { _ in }, forMode: place.mode) }
    }

    /// Something may have changed: the delegate is called soon, once for all that has.
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
