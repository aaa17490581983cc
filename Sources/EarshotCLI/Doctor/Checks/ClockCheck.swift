import EarshotClient

extension Check {
    /// The clock: certificates, the displayed order and log times depend on it.
    static let clock = Check("clock") { facts in
        let next = facts.clock.hasKeeper ? "sudo timedatectl set-ntp true" : "sudo apt install systemd-timesyncd"
        let shown = Words.time(facts.clock.now)
        guard facts.clock.now >= EarshotVersion.date else {
            return [.fail("the clock says \(shown), before the date of this version", next: next)]
        }
        switch facts.clock.isSynchronised {
        case true?: return [.ok("\(shown), synchronised")]
        case false?: return [.warn("\(shown), not synchronised", next: next)]
        case nil: return [.ok(shown)]
        }
    }
}
