internal import Earshot

/// The differences that a reload has found.
struct SettingsChanges: Sendable, Hashable {
    /// Every name, such as `peer.name` or `discovery.info.room`, whose value differs from the running daemon's.
    let changed: [String]
    /// The names among them that take effect at the next start.
    let needsRestart: [String]
}

extension Settings {
    /// Returns how these settings differ from those of the running daemon.
    func changes(from running: Settings) -> SettingsChanges {
        let settings = Setting.all.filter { !$0.isEqual(self, running) }
        let (info, old) = (self.node.discoveryInfo, running.node.discoveryInfo)
        let pairs = Set(info.keys).union(old.keys).filter { info[$0] != old[$0] }.sorted()
        return SettingsChanges(
            changed: settings.map(\.name) + pairs.map { "\(Setting.infoSection).\($0)" },
            needsRestart: settings.filter(\.needsRestart).map(\.name))
    }

    /// Returns these settings with the running daemon's value of every setting that needs a restart.
    func applied(to running: Settings) -> Settings {
        var result = self
        for setting in Setting.all where setting.needsRestart { setting.copy(from: running, to: &result) }
        return result
    }
}
