import EarshotSafety

extension Check {
    /// The system bus, which Avahi needs.
    static let bus = Check("bus") { facts in
        let path = facts.bus.path.escapedForDisplay
        if facts.bus.isRunning { return [.ok("the system bus is running at \(path)")] }
        guard Self.needsAvahi(facts) else { return [.ok("no system bus at \(path); earshotd does not need it")] }
        return [
            .fail(
                "no system bus at \(path): cannot reach Avahi",
                next: "sudo systemctl start dbus; if dbus is not installed, set backend = auto in [discovery]")
        ]
    }
}
