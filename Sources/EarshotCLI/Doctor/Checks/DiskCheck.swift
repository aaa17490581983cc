import EarshotClient
import EarshotSafety

extension Check {
    /// The free bytes below which even messages cannot be stored for long.
    static let fullDisk: UInt64 = 1024 * 1024
    /// The share of the quota from which a warning is given.
    static let nearlyAll = 0.95

    /// The file system of the daemon's state.
    static let disk = Check("disk") { facts in
        let path: String
        let space: DoctorFacts.Disk.Space
        switch facts.disk {
        case .unknown: return [.skip("the state directory is unknown")]
        case .failed(let place, let reason):
            return [
                .fail(
                    "cannot examine \(place.escapedForDisplay): \(reason.escapedForDisplay)",
                    next: "check that it is mounted, and that the daemon's user owns it")
            ]
        case .unwritable(let place, let reason):
            return [
                .fail(
                    "cannot write to \(place.escapedForDisplay): \(reason.escapedForDisplay)",
                    next: "see the kernel's messages: dmesg | tail")
            ]
        case .space(let place, let found): (path, space) = (place.escapedForDisplay, found)
        }
        let amount = "\(Words.size(space.free)) free of \(Words.size(space.total)) at \(path)"
        let next = "free some space there, or fetch received files: earshot file get"
        guard !space.isReadOnly else {
            return [.fail("\(path) is on a read-only file system", next: "see the kernel's messages: dmesg | tail")]
        }
        guard space.inodes == 0 || space.freeInodes > 0 else { return [.fail("the file system of \(path) has no inodes left", next: next)] }
        guard space.free >= Self.fullDisk else { return [.fail("the disk is full: \(amount)", next: next)] }
        guard case .answers(let status, _, _, let received) = facts.daemon, let local = status.local else { return [.ok(amount)] }
        let reserve = Double(space.total) * local.reserve
        guard Double(space.free) > reserve else {
            return [.fail("no space for files above the reserve of \(Int(local.reserve * 100))%: \(amount)", next: next)]
        }
        guard Double(received) < Double(local.quota) * Self.nearlyAll else {
            return [
                .warn(
                    "received files take \(Words.size(received)) of the quota of \(Words.size(local.quota))",
                    next: "fetch them: earshot file get; or raise quota in [resources]")
            ]
        }
        return [.ok(amount)]
    }
}
