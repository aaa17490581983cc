import EarshotSafety

extension Check {
    /// The system bus, on which Avahi is reached.
    static let bus = Check("bus") { facts in
        let path = facts.bus.path.escapedForDisplay
        if facts.bus.isRunning { return [.ok("the system bus runs at \(path)")] }
        guard Self.needsAvahi(facts) else { return [.ok("no system bus at \(path), and earshotd does without")] }
        return [
            .fail(
                "no system bus at \(path), so that Avahi cannot be reached",
                next: "sudo systemctl start dbus; where there is none: backend = auto in [discovery]")
        ]
    }
}
