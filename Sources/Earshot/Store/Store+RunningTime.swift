package import EarshotCore

internal import EarshotWire

/// The running clock (``EarshotCore/Now/running``) on disk. All expiry in the store uses it.
extension Store {
    /// Returns the time from which the running clock continues. If no daemon has noted one yet, it starts with `first`. That is on disk
    /// before this returns, so that the next start does not begin with another wall time.
    package func runningTime(beginningWith first: WallTime) throws(EarshotError) -> WallTime {
        if let noted = self.notedRunning { return Self.time(noted) }
        try self.noteRunningTime(first)
        return first
    }

    /// Notes the time of the running clock. The time that a killed process did not note does not count, so its data is kept slightly
    /// longer.
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
