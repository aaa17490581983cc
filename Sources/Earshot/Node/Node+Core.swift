import DequeModule
import EarshotCore
import EarshotWire
import NIOCore

/// What of the core's work is under way.
struct CoreShell {
    /// Came in while the effects of another were carried out.
    var inputs: Deque<Input> = []
    var isCarryingOut = false
    /// The core's next deadline, as a timer.
    var timer: (at: MonotonicInstant, scheduled: Scheduled<Void>)?
}

extension Node {
    /// Hands the core an input, and carries its effects out, in order, before the next one: what comes in meanwhile waits.
    func handle(_ input: Input) {
        self.coreShell.inputs.append(input)
        guard !self.coreShell.isCarryingOut else { return }
        self.coreShell.isCarryingOut = true
        var effects: [Effect] = []
        while let input = self.coreShell.inputs.popFirst() {
            self.core.handle(input, at: self.transport.timers.now, into: &effects)
            for effect in effects { self.carryOut(effect) }
            effects.removeAll(keepingCapacity: true)
        }
        self.coreShell.isCarryingOut = false
        self.armCoreTimer()
    }

    private func carryOut(_ effect: Effect) {
        switch effect {
        case .send(let link, let frames): self.links[link]?.send(frames)
        case .dataPath(let transfer, let effect): self.carryOut(effect, for: transfer)
        }
    }

    /// One timer for all of the core's deadlines: it comes too early where the first of them was taken back.
    private func armCoreTimer() {
        guard let next = self.core.nextDeadline else { return }
        if let timer = self.coreShell.timer, timer.at <= next { return }
        self.coreShell.timer?.scheduled.cancel()
        let delay = max(.zero, next - self.transport.timers.now)
        // Of all peers' deadlines: none of them is charged for it.
        self.working(for: nil) { self.coreShell.timer = (next, self.schedule(.core, after: delay)) }
    }

    func coreIsDue() {
        self.coreShell.timer = nil
        self.handle(Input.deadline)
    }
}
