extension Check {
    /// The system's mDNS responder.
    static let avahi = Check("avahi") { facts in
        switch facts.avahi.state {
        case .answers: return [.ok("avahi-daemon is running and answers")]
        case .silent:
            return [.fail("avahi-daemon is running but does not answer", next: "sudo systemctl restart avahi-daemon")]
        case .stopped where facts.avahi.isInstalled:
            let next = "sudo systemctl enable --now avahi-daemon"
            if Self.needsAvahi(facts) { return [.fail("avahi-daemon is not running", next: next)] }
            return [.warn("avahi-daemon is not running; earshotd does not need it", next: next)]
        case .stopped:
            if Self.needsAvahi(facts) {
                return [.fail("avahi-daemon is not installed", next: "sudo apt install avahi-daemon, or set backend = auto in [discovery]")]
            }
            return [.ok("avahi-daemon is not installed; earshotd does not need it")]
        }
    }
}
