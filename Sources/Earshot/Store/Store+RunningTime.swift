package import EarshotCore

internal import EarshotWire

/// The running clock (``EarshotCore/Now/running``) on disk. Whatever expires in the store expires by it.
extension Store {
    /// The time from which the running clock goes on. A store that no daemon has noted one in begins with `first`, on disk before this returns:
    /// the next start is not to begin with another wall time.
    package func runningTime(beginningWith first: WallTime) throws(EarshotError) -> WallTime {
        if let noted = self.notedRunning { return Self.time(noted) }
        try self.noteRunningTime(first)
        return first
    }

    /// Notes how far the running clock is. The time that a killed process did not note does not count, so that what is kept stays a little longer.
    package func noteRunningTime(_ time: WallTime) throws(EarshotError) {
        let milliseconds = max(time.milliseconds, self.notedRunning ?? .min)
        guard milliseconds != self.notedRunning else { return }
        _ = try self.attempt { () throws(SQLiteError) in
            try self.database.run(
                "INSERT OR REPLACE INTO running_time (place, milliseconds) VALUES (0, ?)", [.integer(milliseconds)])
        }
        self.notedRunning = milliseconds
    }
}
