extension Check {
    /// The system's mDNS responder.
    static let avahi = Check("avahi") { facts in
        switch facts.avahi.state {
        case .answers: return [.ok("avahi-daemon runs and answers")]
        case .silent:
            return [.fail("avahi-daemon runs and does not answer", next: "sudo systemctl restart avahi-daemon")]
        case .stopped where facts.avahi.isInstalled:
            let next = "sudo systemctl enable --now avahi-daemon"
            if Self.needsAvahi(facts) { return [.fail("avahi-daemon does not run", next: next)] }
            return [.warn("avahi-daemon does not run; earshotd does without", next: next)]
        case .stopped:
            if Self.needsAvahi(facts) {
                return [.fail("avahi-daemon is not installed", next: "sudo apt install avahi-daemon; or backend = auto in [discovery]")]
            }
            return [.ok("avahi-daemon is not installed, and earshotd does without")]
        }
    }
}
